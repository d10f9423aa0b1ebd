"""YAML becomes validated models; every message says where, what is wrong and what would be right.

``discover`` finds suites, ``yaml_reader`` reads, ``suites`` and ``profiles`` validate, ``model``
fills in defaults, ``semantics`` sees what a single field cannot, ``problems`` puts it into words.
"""
