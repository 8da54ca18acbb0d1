# Sourced by tests/vm/run: what a guest is made of, kept in $cache. Nothing is installed on this
# machine.
#
#   kernel/      Debian's cloud kernel, downloaded with apt-get and unpacked; vmlinux is its payload,
#                which QEMU boots directly (emulated decompression would take longer than the boot)
#   initramfs    busybox, the modules for virtiofs and overlay, guest/initramfs-init
#   systemd-root the small Debian of the variant `systemd`
#
# Each is made once, the Debian again when its packages change; remove the directory to make them anew.
# shellcheck shell=bash
# shellcheck disable=SC2154  # here and variant are the caller's

cache=${XDG_CACHE_HOME:-$HOME/.cache}/sbx-vm
kernel_package=linux-image-cloud-amd64
# Beyond what systemd needs: the user manager, subordinate ids, the libraries our programs link to.
systemd_packages=systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,uidmap,passwd
systemd_packages+=,python3-minimal,procps,util-linux,libseccomp2,libcap2,libssl3,libstdc++6
systemd_packages+=,libcurl4,libpng16-16

# A visible skip: ctest counts exit code 77.
skip() {
  echo "SKIP tests/vm: $*"
  exit 77
}

require_tools() {
  local tool
  export PATH=$PATH:/usr/sbin:/sbin
  [ "$(uname -m)" = x86_64 ] || skip "the guest is x86-64"
  for tool in qemu-system-x86_64 busybox cpio depmod lz4 unshare; do
    command -v "$tool" >/dev/null || skip "$tool is not installed (scripts/install-deps test)"
  done
  [ "$(id -u)" = 0 ] || skip "needs root, to share this machine's files read-only with the guest"
  virtiofsd=/usr/lib/qemu/virtiofsd
  [ -x "$virtiofsd" ] || virtiofsd=/usr/libexec/virtiofsd
  [ -x "$virtiofsd" ] || skip "virtiofsd is not installed"
}

fill_cache() {
  mkdir -p "$cache"
  exec 9>"$cache/lock"
  flock 9
  [ -e "$cache/kernel/complete" ] || make_kernel
  if [ ! -e "$cache/initramfs" ] || [ "$here/guest/initramfs-init" -nt "$cache/initramfs" ]; then
    make_initramfs
  fi
  if [ "$variant" = systemd ] && ! has_systemd_root; then make_systemd_root; fi
  exec 9>&-
}

# The named package is empty and depends on the kernel of the day.
download_kernel() {
  local package
  package=$(apt-cache depends "$kernel_package" | awk '/Depends: linux-image/ {print $2}')
  [ -n "$package" ] && (cd "$cache/kernel/download" && apt-get -q -o Acquire::Retries=5 download "$package")
}

make_kernel() {
  local release
  rm -rf "$cache/kernel"
  mkdir -p "$cache/kernel/download"
  # Without package lists, or with old ones, there is nothing to download.
  { download_kernel || { apt-get -q -o Acquire::Retries=5 update && download_kernel; }; } >"$cache/kernel.log" 2>&1 ||
    skip "$kernel_package cannot be downloaded: $(tail -n 1 "$cache/kernel.log")"
  dpkg -x "$cache"/kernel/download/*.deb "$cache/kernel"
  rm -r "$cache/kernel/download"
  release=$(ls "$cache/kernel/lib/modules")
  depmod -b "$cache/kernel" "$release" 2>>"$cache/kernel.log"
  unpack_payload "$cache/kernel/boot/vmlinuz-$release" "$cache/kernel/vmlinux"
  touch "$cache/kernel/complete"
}

# The compressed kernel inside a bzImage: offset and length stand in the setup header (the kernel's
# Documentation/arch/x86/boot.rst: setup_sects, payload_offset, payload_length).
unpack_payload() { # unpack_payload BZIMAGE VMLINUX
  local sectors offset length
  number() { od -An -t"u$3" -j"$2" -N"$3" "$1" | tr -d ' '; }
  sectors=$(number "$1" $((0x1f1)) 1)
  offset=$(((sectors + 1) * 512 + $(number "$1" $((0x248)) 4)))
  length=$(($(number "$1" $((0x24c)) 4) - 4)) # the last four bytes are its size when unpacked
  payload() {
    dd if="$1" bs=1M iflag=skip_bytes,count_bytes skip="$offset" count="$length" status=none
  }
  case $(od -An -tx1 -j"$offset" -N4 "$1" | tr -d ' ') in
    02214c18) payload "$1" | lz4 -dc >"$2" ;;
    fd377a58) payload "$1" | xz -dc --single-stream >"$2" ;;
    28b52ffd) payload "$1" | zstd -dc >"$2" ;;
    *) cp "$1" "$2" ;;
  esac || cp "$1" "$2" # slower to boot, but it boots
}

make_initramfs() {
  local tree release module file count=100
  release=$(ls "$cache/kernel/lib/modules")
  tree=$(mktemp -d "$cache/initramfs.XXXXXX")
  mkdir -p "$tree/bin" "$tree/modules"
  cp "$(command -v busybox)" "$tree/bin/busybox"
  for module in virtio_pci virtiofs overlay virtio_console; do
    while read -r _ file _; do
      # Numbered, because each must be loaded after those it depends on.
      compgen -G "$tree/modules/*-$(basename "$file")" >/dev/null && continue
      cp "$file" "$tree/modules/$count-$(basename "$file")"
      count=$((count + 1))
    done < <(modprobe -d "$cache/kernel" -S "$release" --show-depends "$module" | grep '^insmod')
  done
  install -m 0755 "$here/guest/initramfs-init" "$tree/init"
  (cd "$tree" && find . | cpio -o -H newc --quiet) >"$cache/initramfs.new"
  rm -r "$tree"
  mv "$cache/initramfs.new" "$cache/initramfs"
}

# systemd-root.complete names the packages that it was made of.
has_systemd_root() { [ "$(cat "$cache/systemd-root.complete" 2>/dev/null)" = "$systemd_packages" ]; }

make_systemd_root() {
  command -v mmdebstrap >/dev/null ||
    skip "mmdebstrap is not installed (scripts/install-deps build)"
  local attempt
  # A mirror may be out of breath for a while. The mounts are nobody else's: tests beside it look for what is left.
  for attempt in 1 2 3; do
    rm -rf "$cache/systemd-root" "$cache/systemd-root.complete"
    unshare --mount mmdebstrap --mode=root --variant=minbase --aptopt='Acquire::Retries "5"' \
      --include="$systemd_packages" bookworm "$cache/systemd-root" >"$cache/systemd-root.log" 2>&1 && break
    [ "$attempt" -lt 3 ] || skip "the systemd guest cannot be made: $(tail -n 1 "$cache/systemd-root.log")"
    sleep 10
  done
  echo "$systemd_packages" >"$cache/systemd-root.complete"
}
