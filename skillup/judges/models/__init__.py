"""How skillup asks models: for its judges, and for the simulated user.

question    what is asked and what comes back: the seam that others use
client      the one who is asked; it masks, looks into the cache, and asks the same only once
names, access, choice       which model, where it is reached, and with which key
stored, flights             answers on disk; questions that are under way
remote, providers, received, attempts, patience, account    over the network, by pydantic-ai
scripted    the written-down judge
failures, errors_of_models  what a user is told where there is no answer
"""
