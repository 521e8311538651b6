// Browsers start no worker for a page that was opened from a folder: its script then runs in a hidden frame, so that search works.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.tell(this, data);
      inside.importScripts = (...urls) => Promise.all(urls.map((one) => this.load(one)));
      this.load(url).then(() => {
        this.ready = true;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = new URL(url, location.href).href;
        script.onload = resolve;
        script.onerror = () => reject(new Error(`cannot load ${url}`));
        this.frame.contentDocument.body.append(script);
      });
    }

    tell(target, data) {
      const event = new MessageEvent("message", { data });
      target.dispatchEvent(event);
      if (typeof target.onmessage === "function" && target === this) target.onmessage(event);
    }

    postMessage(data) {
      if (this.ready) this.tell(this.frame.contentWindow, data);
      else this.waiting.push(data);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
