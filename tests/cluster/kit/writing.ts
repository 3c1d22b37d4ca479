/** A script that writes a block which says how often it was written, reads it back past the cache, and counts. */
export function writingTo(device: string): string {
  return `set -e
n=$(dd if=/dev/${device} bs=4096 count=1 iflag=direct 2>/dev/null | tr -d '\\000' | head -n 1)
n=\${n:-0}
echo $n >/tmp/found
while :; do
  n=$((n + 1))
  echo $n | dd of=/dev/${device} bs=4096 conv=notrunc,fsync,sync 2>/dev/null
  [ "$(dd if=/dev/${device} bs=4096 count=1 iflag=direct 2>/dev/null | head -n 1)" = $n ]
  echo $n >/tmp/count
  sleep 0.2
done`;
}

/** A script that appends to a file of the file system of that name, syncs it, and counts. */
export function appendingTo(filesystem: string): string {
  return `set -e
cd /${filesystem}
touch lines
wc -l <lines >/tmp/found
while :; do
  echo line >>lines
  sync
  wc -l <lines >/tmp/count
  sleep 0.2
done`;
}
