"""The studio: the whole workflow in a browser, on the own machine.

In: a file, and clicks. Out: pages. It calls the library and adds no mathematics: ``server`` binds
to the loopback address, ``safety`` decides who may come in, ``folder`` holds what may not stay,
``jobs`` and ``worker`` do the heavy work in processes of their own, ``session`` knows what is being
worked on, and ``pages`` are one module each: handlers, their form and a template.
"""
