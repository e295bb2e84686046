# Makes a directory the root of a machine and stays: its namespaces last as long.
#
# root.sh INIT ROOT USR LOCAL CGROUPS [NAME PROGRAM]...
#
# INIT is the machine's first process; if it is empty the one of its host stays it. USR
# and LOCAL are directories for /usr and /usr/local, CGROUPS are the machine's control
# groups, separated by colons, and each PROGRAM of this machine is there as bin/NAME.
set -eu

# Again, in namespaces of its own.
if [ "${1-}" != inside ]; then
	own=(--cgroup --mount --propagation private)
	[ -z "$1" ] || own+=(--pid --ipc --fork --kill-child)
	exec unshare "${own[@]}" bash -c "$BASH_EXECUTION_STRING" root.sh inside "$@"
fi
init=$2 root=$3 usr=$4 local=$5 groups=$6
shift 6

while [ $# -gt 0 ]; do
	: >>"$local/bin/$1"
	mount --bind "$2" "$local/bin/$1"
	shift 2
done

mount --rbind "$root" "$root"
cd "$root"

mount --bind -o ro "$usr" usr
mount --rbind "$local" usr/local

mount -t proc -o nosuid,nodev,noexec proc proc
mount -t sysfs -o nosuid,nodev,noexec sysfs sys

# Every hierarchy of this machine, in which the machine sees its own groups alone.
mount -t tmpfs -o nosuid,nodev,noexec,mode=755 cgroup sys/fs/cgroup
IFS=:
for group in $groups; do
	hierarchy=${group#/sys/fs/cgroup/}
	hierarchy=${hierarchy%%/*}
	mkdir "sys/fs/cgroup/$hierarchy"
	case $hierarchy in
	unified) mount -t cgroup2 cgroup2 sys/fs/cgroup/unified ;;
	systemd) mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd ;;
	*) mount -t cgroup -o "$hierarchy" cgroup "sys/fs/cgroup/$hierarchy" ;;
	esac
done
unset IFS

mount -t tmpfs -o nosuid,mode=755 dev dev
mknod -m 666 dev/null c 1 3
mknod -m 666 dev/zero c 1 5
mknod -m 666 dev/full c 1 7
mknod -m 666 dev/random c 1 8
mknod -m 666 dev/urandom c 1 9
mknod -m 600 dev/kmsg c 1 11
mknod -m 666 dev/tty c 5 0
mkdir dev/pts dev/shm
mount -t devpts -o nosuid,noexec,newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
mount -t tmpfs -o nosuid,nodev,mode=1777 shm dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr

# Kubelet sets these for the whole kernel, this machine's too. It finds them set.
mkdir dev/.sysctl
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
	kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
	file=dev/.sysctl/$(echo "${setting%=*}" | tr / .)
	echo "${setting#*=}" >"$file"
	mount --bind -o ro "$file" "proc/sys/${setting%=*}"
done

mkdir .old
pivot_root . .old
cd /
umount -l /.old
rmdir /.old
# As systemd has it: containers see later mounts of the machine where they ask for it.
mount --make-rshared /
if [ -n "$init" ]; then
	# Where it cannot be written to, udev does not run and no program waits for it: its
	# devices are this machine's.
	mount -o remount,bind,ro /sys
	rm /dev/kmsg # the kernel's messages are this machine's
	hostname localhost
	echo up
	exec env -i container=oci PATH=/usr/sbin:/usr/bin:/sbin:/bin "$init"
fi
echo up
exec sleep infinity
