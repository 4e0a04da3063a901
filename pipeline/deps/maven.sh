# Fills ./repository with what `mvn -o test` needs of the poms in ./project. No plugin of
# theirs is run.
set -u
cd project
mvn="mvn -B -ntp -s $PWD/../settings.xml -gs $PWD/../settings.xml -Dmaven.repo.local=$PWD/../repository"
goal=org.apache.maven.plugins:maven-dependency-plugin:3.5.0
get() {
  out=$($mvn "$@" 2>&1) && return
  case "$out" in *"Could not find artifact org.apache.maven.surefire:"*) return ;; esac # a version without that provider
  printf '%s\n' "$out" | sed -n 's/^\[ERROR\] //p' | grep -v -e '^$' -e '^\[Help' -e 'full stack trace' -e 'full debug logging' -e 'more information' >&2
  exit 1
}
get $goal:go-offline

# What Surefire and Failsafe look for only when tests run: a provider for each framework,
# and the launcher of the JUnit platform's own version.
cd ../repository
has() { [ -d "$1" ] && [ -n "$(find "$1" -name '*.jar' | head -n 1)" ]; }
wanted=
for common in org/apache/maven/surefire/maven-surefire-common/*/*.jar; do
  [ -e "$common" ] || continue
  v=${common%/*} && v=${v##*/}
  for provider in junit/junit:surefire-junit4 junit/junit:surefire-junit47 org/junit/platform:surefire-junit-platform org/testng/testng:surefire-testng; do
    has "${provider%:*}" && wanted="$wanted org.apache.maven.surefire:${provider#*:}:$v"
  done
  [ -n "$wanted" ] || wanted="org.apache.maven.surefire:surefire-junit3:$v" # tests without a framework
done
for engine in org/junit/platform/junit-platform-engine/*/*.jar; do
  [ -e "$engine" ] && v=${engine%/*} && wanted="$wanted org.junit.platform:junit-platform-launcher:${v##*/}"
done
for one in $wanted; do # each by itself, since versions of one artifact would push each other out
  mkdir -p "../forge/$one" && cd "../forge/$one"
  printf '<project><modelVersion>4.0.0</modelVersion><groupId>forge</groupId><artifactId>forge</artifactId><version>1</version><dependencies><dependency>%s</dependency></dependencies></project>' \
    "$(printf %s "$one" | sed 's|\(.*\):\(.*\):\(.*\)|<groupId>\1</groupId><artifactId>\2</artifactId><version>\3</version>|')" > pom.xml
  get $goal:resolve
  cd ../../repository
done

# Without these files Maven asks nobody where an artifact came from.
find . \( -name _remote.repositories -o -name '*.lastUpdated' -o -name resolver-status.properties \) -delete
