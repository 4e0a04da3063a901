# The server in a container: a static binary, git, bubblewrap and Go, no root. Building
# it needs a container engine. Running it with the sandbox needs user namespaces in the
# container: see .github/deploy/README.md.
#
# The base is named by its tag, since no registry was at hand to ask for its digest. Pin
# it for releases: --build-arg BASE=golang:1.26-bookworm@sha256:…
ARG BASE=golang:1.26-bookworm
FROM ${BASE} AS build
ARG VERSION=
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download && go mod verify
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X forge/cmd/forge/server.release=${VERSION}" -o /forge ./cmd/forge

# The toolchain stays in: the sandbox runs Go repositories' tests with it, and Forge
# installs their dependencies. TOOLS adds those of other languages, from Debian:
# --build-arg TOOLS="nodejs npm", "python3 python3-pip python3-venv", "cargo",
# "default-jdk-headless maven", "ruby bundler", "php-cli composer unzip".
FROM ${BASE}
ARG TOOLS=
RUN apt-get update \
 && apt-get install -y --no-install-recommends bubblewrap ca-certificates curl git tini ${TOOLS} \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --user-group --home-dir /var/lib/forge --create-home forge \
 && useradd --system --uid 10002 --user-group --home-dir /nonexistent --shell /usr/sbin/nologin forge-worker
COPY --from=build /forge /usr/local/bin/forge
# As this user, what works on repositories shares it with the server, in namespaces of its
# own without the server's files. Two users need a server that may change them: --user 0
# --cap-drop ALL --cap-add CHOWN,DAC_OVERRIDE,FOWNER,FSETID,KILL,SETGID,SETUID
# -e FORGE_WORKER_USER=forge-worker, on a volume of its own.
USER 10001:10001
ENV FORGE_STATE_DIR=/var/lib/forge FORGE_LISTEN=0.0.0.0:8080
VOLUME /var/lib/forge
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["curl", "-fsS", "-o", "/dev/null", "http://127.0.0.1:8080/healthz"]
# tini reaps what commands of repositories leave behind.
ENTRYPOINT ["tini", "--", "forge"]
CMD ["serve"]
