#!/bin/sh
# Prints the path of a Deno of exactly the version of tools/deno/package.json: the one on the PATH if it is that version,
# else one brought from npm into a folder of the project. npm refuses one whose bytes are not those of
# tools/deno/package-lock.json. With --checked only that one counts, and only while its bytes are those of
# tools/deno/SHA256SUMS: nobody knows the bytes of one on the PATH.
# usage: get-deno.sh [--checked] FOLDER
set -eu
on_path=$(command -v deno || true)
checked=
[ "$1" != --checked ] || { on_path=; checked=1; shift; }
pins=$(cd "$(dirname "$0")/deno" && pwd)
version=$(sed -n 's/.*"deno": "\(.*\)".*/\1/p' "$pins/package.json")
mkdir -p "$1"
folder=$(cd "$1" && pwd)
is_pinned() {
  sum=$(if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi <"$1")
  grep -q "^${sum%% *} " "$pins/SHA256SUMS"
}
for candidate in "$folder/deno-$version/node_modules/.bin/deno" "$on_path"; do
  [ -n "$candidate" ] && [ -x "$candidate" ] || continue
  [ -z "$checked" ] || is_pinned "$candidate" || continue
  case "$("$candidate" --version 2>/dev/null | head -n 1)" in
    "deno $version "*) printf '%s\n' "$candidate"; exit 0 ;;
  esac
done
command -v npm >/dev/null || { echo "Deno $version is not on the PATH, and npm, which would bring it, is not there either" >&2; exit 1; }
mkdir -p "$folder/deno-$version"
cp "$pins/package.json" "$pins/package-lock.json" "$folder/deno-$version/"
npm ci --loglevel=error --no-audit --no-fund --prefix "$folder/deno-$version" >&2 ||
  { echo "Cannot get Deno $version from npm: put it on the PATH (not for a release), or try again with a network" >&2; exit 1; }
printf '%s\n' "$folder/deno-$version/node_modules/.bin/deno"
