"""Sprocket behind frameworks that other people made: task queues first.

Each framework has a module or a sub-package of its own, named as the framework, and an extra of the
same name. Nothing else of Sprocket imports this package, and no part of it imports another
framework than its own, so each loads with that framework alone.
"""
