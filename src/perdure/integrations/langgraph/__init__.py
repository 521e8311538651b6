"""LangGraph: a checkpointer and a store on a user's state.

```python
ana = engine.memory("ana")
graph = builder.compile(checkpointer=PerdureSaver(ana), store=PerdureStore(ana))
graph.invoke({"messages": […]}, {"configurable": {"thread_id": "42"}})
```
"""

from perdure.integrations.langgraph.saver import PerdureSaver
from perdure.integrations.langgraph.store import PerdureStore

__all__ = ["PerdureSaver", "PerdureStore"]
