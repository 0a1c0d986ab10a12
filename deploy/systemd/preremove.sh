#!/bin/sh
# Before the files go, unless others come: dpkg says upgrade, rpm 1.
set -e
case "$1" in
upgrade | 1) exit 0 ;;
esac
[ -d /run/systemd/system ] || exit 0
systemctl disable --now lutra.socket lutra.service
