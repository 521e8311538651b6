def run(round):
    round.met("http refused")
    round.met("http answered")
