def write(study, output): pass
