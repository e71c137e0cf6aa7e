# Installed and exported package: filled in with the client's targets.
