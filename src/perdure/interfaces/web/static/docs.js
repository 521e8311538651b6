// The HTTP API: its description is drawn by Swagger UI; what is tried here is sent as the reader of the page.
(() => {
  "use strict";
  const place = document.getElementById("api");
  const ui = window.SwaggerUIBundle({
    url: place.dataset.url,
    domNode: place,
    deepLinking: true,
    docExpansion: "none",
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    filter: true,
    persistAuthorization: false,
    validatorUrl: null,
    tryItOutEnabled: true,
    syntaxHighlight: { activated: false },
    requestInterceptor: (request) => {
      if (new URL(request.url, location.href).origin === location.origin) request.headers["X-CSRF-Token"] = place.dataset.csrf;
      return request;
    },
    onComplete: () => {
      if (place.dataset.token) ui.preauthorizeApiKey("key", place.dataset.token);
      // The page has a main part of its own.
      place.querySelector("main")?.setAttribute("role", "group");
      place.dataset.ready = "";
    },
  });
})();
