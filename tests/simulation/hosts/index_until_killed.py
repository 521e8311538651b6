"""Makes the index until the process is killed: path of the store, then `job` to run the index job as things are said, `reindex`
to make everything anew over and over, or `other` to make the vectors of another embedder."""

import sys
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import perdure
from perdure.services.index import job as indexing
from perdure.services.jobs.worker import Worker
from scripted_embedder import ScriptedEmbedder

url, manner = sys.argv[1:]
# Many short steps, so that there are many moments to be killed at.
indexing.EMBED_BATCH, indexing.PACK_ITEMS, indexing.PAGE, indexing.GONE_MAX = 3, 8, 5, 10
embedder = ScriptedEmbedder(name="other" if manner == "other" else "scripted")
engine = perdure.open(settings=perdure.Settings(url=url), embedder=embedder)
ana = engine.memory("ana")
handlers = {"index": engine._composed.handlers["index"]}
worker = Worker(engine._store, engine._clock, handlers, "doomed", lease_s=0.2)
print("ready", flush=True)
for number in count():
    if manner == "reindex":
        ana.admin.reindex()
    else:
        ana.state.save("round", number)
        ana.remember("Owns a boat")
        worker.process(5)
