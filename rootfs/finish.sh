#!/bin/sh
# Usage: finish.sh SOURCE_DATE_EPOCH
#
# Runs inside the new image (chroot, as its root) when all packages are in; rootfs/build puts it there. It makes
# the file system one that can be mounted read-only for any uid: everything that programs would otherwise
# write at their first start (byte code, font lists) is written now, and what belongs to a host is removed.
set -eu
epoch=$1
export LC_ALL=C.UTF-8 HOME=/tmp PYTHONHASHSEED=0

has() { command -v "$1" > /dev/null; }

# --- What the packages depend on but no program here uses: the compilers behind scipy's Pythran, Tk and X,
# Perl's libraries, JavaScript for web pages, Unicode's tables. What then lacks a library fails the build, below.
unneeded="
  binutils binutils-common binutils-x86-64-linux-gnu binutils-aarch64-linux-gnu cpp cpp-12 g++ g++-12 gcc gcc-12
  libasan8 libatomic1 libbinutils libboost-dev libboost1.74-dev libc-dev-bin libc6-dev libcc1-0 libcrypt-dev
  libctf-nobfd0 libctf0 libexpat1-dev libgcc-12-dev libgprofng0 libhwasan0 libisl23 libitm1 liblsan0 libmpc3
  libnsl-dev libopenblas-dev libopenblas-pthread-dev libpython3-all-dev libpython3-dev libpython3.11-dev
  libstdc++-12-dev libtirpc-dev libtsan2 libubsan1 libxsimd-dev linux-libc-dev python3-all-dev python3-dev
  python3-pythran python3-beniget python3-gast python3-ply python3.11-dev rpcsvc-proto zlib1g-dev
  blt libtcl8.6 libtk8.6 libx11-6 libx11-data libxext6 libxft2 libxrender1 libxss1 python3-pil.imagetk python3-tk
  tk8.6-blt2.5 x11-common
  libfile-find-rule-perl libnumber-compare-perl libperl5.36 libtext-glob-perl perl perl-modules-5.36 usrmerge
  libjs-jquery libjs-jquery-ui libjs-sphinxdoc libjs-underscore unicode-data
"
installed=
for package in $unneeded; do
  ! dpkg-query -s "$package" > /dev/null 2>&1 || installed="$installed $package"
done
# shellcheck disable=SC2086  # a list of words
[ -z "$installed" ] || dpkg --purge --force-depends $installed
find /usr/lib/python3 -type d -name tests -prune -exec rm -rf {} +
broken=$(find /usr/bin /usr/lib \( -name '*.so*' -o -path '/usr/bin/*' \) -type f -exec ldd {} + 2> /dev/null |
  sed -n 's/^[[:space:]]*\(.*\) => not found$/\1/p' | sort -u)
if [ -n "$broken" ]; then
  echo "libraries that something needs and nothing has: $broken" >&2
  exit 1
fi

# --- /etc: one user, no names but localhost, no resolver, UTC.
rm -f /etc/passwd- /etc/group- /etc/shadow* /etc/gshadow* /etc/subuid* /etc/subgid* /etc/.pwd.lock
cat > /etc/passwd << 'END'
root:x:0:0:root:/root:/usr/sbin/nologin
sandbox:x:65534:65534:sandbox:/work:/bin/bash
END
cat > /etc/group << 'END'
root:x:0:
sandbox:x:65534:
END
printf '127.0.0.1 localhost\n::1 localhost\n' > /etc/hosts
for database in passwd group shadow hosts networks protocols services ethers rpc netgroup; do
  echo "$database: files"
done > /etc/nsswitch.conf
ln -sf /usr/share/zoneinfo/Etc/UTC /etc/localtime
echo Etc/UTC > /etc/timezone
rm -rf /etc/cron* /etc/init.d /etc/rc?.d /etc/systemd /etc/logrotate.d /etc/motd /etc/issue* \
  /etc/fstab /etc/mtab /etc/machine-id /etc/default/useradd /etc/skel

# --- Paths that the sandbox mounts over.
mkdir -p /dev /proc /tmp /code /input /output /work /opt/sbx

# --- What only installing packages needs. The status file stays: scanners for known holes read it.
find /var/lib/dpkg -mindepth 1 ! -name status -delete
rm -rf /var/lib/apt /var/cache/apt /var/cache/debconf /var/cache/ldconfig /var/lib/systemd /var/lib/pam \
  /usr/share/debconf /usr/share/perl5/Debian
rmdir /boot /media /mnt /srv /home
find /var/log /var/backups /var/spool /var/mail /run /root -mindepth 1 -delete

# --- Fonts: the caches record each directory's time, in whole seconds, which must not change any more.
if has fc-cache; then
  find /usr/share/fonts /usr/local/share/fonts -exec touch -h -d "@$epoch" {} + 2> /dev/null || true
  rm -rf /var/cache/fontconfig
  fc-cache --system-only --really-force
fi

# --- Python: the list of fonts, where MPLCONFIGDIR shows matplotlib to it. One word of matplotlib is changed: it would
# ignore a directory that it cannot write to, warn, and list all fonts anew in each run.
matplotlib=/usr/lib/python3/dist-packages/matplotlib
if [ -d $matplotlib ]; then
  sed -i 's/if os.access(str(configdir), os.W_OK) and/if os.access(str(configdir), os.R_OK) and/' $matplotlib/__init__.py
  grep -q 'os.access(str(configdir), os.R_OK)' $matplotlib/__init__.py
  mkdir -p /opt/sbx/matplotlib
  MPLCONFIGDIR=/opt/sbx/matplotlib MPLBACKEND=Agg python3 -B -c 'import matplotlib.pyplot'
fi

# --- Byte code that is never checked against its source, since times may be lost in copies and nobody can edit
# the source.
if has python3; then
  find / -xdev -name __pycache__ -prune -exec rm -rf {} +
  find /usr/lib/python3 /usr/lib/python3.[0-9]* -name '*.py' -print0 |
    xargs -0 -P "$(nproc)" -n 500 python3 -m compileall -q -f --invalidation-mode unchecked-hash
fi

# --- What a program can use, for the manifest and for the note on a missing module.
{
  echo '{"python": '
  if has python3; then
    python3 -B - << 'END'
import json, platform
from importlib.metadata import distributions
found = {d.metadata["Name"]: d.version for d in distributions()}
print(json.dumps({"python": platform.python_version(), **dict(sorted(found.items()))}))
END
  else
    echo '{}'
  fi
  echo ', "javascript": '
  if has node; then node -p 'JSON.stringify({node: process.versions.node})'; else echo '{}'; fi
  echo '}'
} > /opt/sbx/packages.json

# --- Any uid may read everything; nobody gains anything by a file's mode, and nobody but the owner writes.
find /tmp /var/tmp -mindepth 1 -delete
each() { find / -xdev \( -path /proc -o -path /sys -o -path /dev \) -prune -o "$@" {} +; }
each ! -type l -exec chmod a+rX,u+w,go-w,ug-s,-t
each -newermt "@$epoch" -exec touch -h -d "@$epoch"
