"""Opens a new store where no file may grow, then again with room: url, bytes a file may have."""

import resource
import sys

import perdure

url, bytes_max = sys.argv[1:]
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(bytes_max), hard))
try:
    perdure.open(settings=perdure.Settings(url=url))
except perdure.PerdureError as error:
    print(type(error).__name__)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
with perdure.open(settings=perdure.Settings(url=url)) as engine:
    engine.memory("ana").append("user", "hello")
    print("opened")
