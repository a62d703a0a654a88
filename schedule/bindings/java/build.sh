#!/bin/sh
# Builds tailwright-gat.jar: build.sh FOLDER. Needs a JDK of version 17 or newer, and Maven, which fetches jars by name.
# Exit codes: 0 built; 3 the jars cannot be had; 1 anything else.
set -eu
[ $# = 1 ] || { echo "expected a folder: build.sh FOLDER" >&2; exit 1; }
mkdir -p "$1"
cd "$1"
out=$(pwd)
cd - >/dev/null
cd "$(dirname "$0")"
here=$(pwd)
# Two builds at once into one folder come one after the other.
exec 9>"$out.lock"
flock 9
if ! (cd "$out/jars" 2>/dev/null && sha256sum --quiet -c "$here/jars.sha256" 2>/dev/null); then
	mvn -q -B -f pom.xml dependency:copy-dependencies -DexcludeTransitive=true -DoutputDirectory="$out/jars" || exit 3
	(cd "$out/jars" && sha256sum --quiet -c "$here/jars.sha256")
fi
rm -rf "$out/classes.new" "$out/classes.old"
mkdir -p "$out/classes.new/isolated/dev/tailwright/gat"
javac -XDignore.symbol.file -Xlint:all,-classfile,-options -g -proc:none -source 17 -target 17 --add-exports java.base/sun.net.www=ALL-UNNAMED \
	-cp "$out/jars/byte-buddy-1.18.17.jar:$out/jars/tomcat-embed-core-10.1.40.jar" \
	-d "$out/classes.new" src/dev/tailwright/gat/*.java src/dev/tailwright/gat/instrument/*.java
mv "$out/classes.new/dev/tailwright/gat/instrument" "$out/classes.new/isolated/dev/tailwright/gat/"
(cd "$out/classes.new/isolated" && jar xf "$out/jars/byte-buddy-1.18.17.jar" && rm -rf META-INF/versions META-INF/maven META-INF/MANIFEST.MF)
jar --create --file "$out/new.jar" --manifest manifest.txt -C "$out/classes.new" .
# Programs that run with the former jar keep it.
mv "$out/new.jar" "$out/tailwright-gat.jar"
[ ! -e "$out/classes" ] || mv "$out/classes" "$out/classes.old"
mv "$out/classes.new" "$out/classes"
rm -rf "$out/classes.old"
