"""Chat models, for those who bring one of their own: `perdure.open(model=…)` takes anything that has a `name` and `chat`.

>>> from perdure.models import ChatReply, ChatRequest
>>> class Echo:
...     name = "echo-1"
...     def chat(self, request: ChatRequest) -> ChatReply:
...         return ChatReply(request.messages[-1].content)
"""

from perdure.domain.models import ChatMessage, ChatReply, ChatRequest, Consulted, Usage
from perdure.ports.chat import ChatModel, ModelRefused, ModelTimeout

__all__ = [
    "ChatMessage",
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "Consulted",
    "ModelRefused",
    "ModelTimeout",
    "Usage",
]
