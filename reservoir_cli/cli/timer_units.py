"""Write the units by which systemd and launchd run a command every few minutes."""

import shlex
from collections.abc import Sequence

#: Minutes between two runs of the timer.
_MINUTES = 10

_SYSTEMD = """\
# ~/.config/systemd/user/reservoir-sync.service
[Unit]
Description=Import new messages into Reservoir

[Service]
Type=oneshot
Nice=10
ExecStart={command}

# ~/.config/systemd/user/reservoir-sync.timer
# then: systemctl --user enable --now reservoir-sync.timer
[Unit]
Description=Import new messages into Reservoir

[Timer]
OnStartupSec=2min
OnUnitInactiveSec={minutes}min

[Install]
WantedBy=timers.target
"""
_LAUNCHD = """\
<!-- ~/Library/LaunchAgents/reservoir-sync.plist
     then: launchctl load ~/Library/LaunchAgents/reservoir-sync.plist -->
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
"http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>reservoir-sync</string>
  <key>ProgramArguments</key>
  <array>
{arguments}
  </array>
  <key>StartInterval</key><integer>{seconds}</integer>
  <key>ProcessType</key><string>Background</string>
</dict>
</plist>
"""


def systemd(command: Sequence[str]) -> str:
    """Return a service and its timer."""
    return _SYSTEMD.format(command=_for_systemd(command), minutes=_MINUTES)


def launchd(command: Sequence[str]) -> str:
    """Return a property list."""
    arguments = "\n".join(f"    <string>{_escape_xml(word)}</string>" for word in command)
    return _LAUNCHD.format(arguments=arguments, seconds=60 * _MINUTES)


def _for_systemd(command: Sequence[str]) -> str:
    """Quote a command; unlike a shell, systemd also reads these characters within quotes."""
    line = shlex.join(command)
    return line.replace("\\", "\\\\").replace("%", "%%").replace("$", "$$")


def _escape_xml(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
