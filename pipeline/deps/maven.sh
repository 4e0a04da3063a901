# Runs Maven's tests once, since much of what it fetches is asked for only then. Where the
# build wants a newer Maven than the server's, one comes from the registry.
set -u
newer=3.9.9
build() { mvn -B -ntp -fae -Dmaven.test.failure.ignore=true -Dsurefire.timeout=420 test 2>&1 | tee /deps/forge/maven.log; }
build
if grep -q 'RequireMavenVersion failed\|requires Maven version' /deps/forge/maven.log; then
	mvn -B -ntp -q org.apache.maven.plugins:maven-dependency-plugin:3.8.1:unpack \
		-Dartifact=org.apache.maven:apache-maven:$newer:zip:bin -DoutputDirectory=/deps/maven -f /deps/forge/empty.xml || exit
	mv /deps/maven/apache-maven-$newer/* /deps/maven && chmod +x /deps/maven/bin/mvn
	PATH=/deps/maven/bin:$PATH
	build
fi
# Without these files Maven asks nobody where an artifact came from.
find /deps/.m2/repository \( -name _remote.repositories -o -name '*.lastUpdated' -o -name resolver-status.properties \) -delete
grep -q 'BUILD SUCCESS' /deps/forge/maven.log
