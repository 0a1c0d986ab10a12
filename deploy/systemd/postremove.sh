#!/bin/sh
# After the files have gone. dpkg --purge takes the models too.
set -e
if [ "$1" = purge ]; then
  rm -rf /var/lib/lutra /var/lib/private/lutra
fi
[ ! -d /run/systemd/system ] || systemctl daemon-reload
