def run(round):
    round.met("mcp answered")
    round.met("mcp survived garbage")
