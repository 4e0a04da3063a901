# The server in a container: a static binary, git and bubblewrap, no root.
# Building it needs a container engine; running it with the sandbox needs user
# namespaces in the container: --security-opt seccomp=unconfined, or an engine
# whose profile lets bubblewrap make them.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /forge ./cmd/forge

# The toolchain stays in: the sandbox runs Go repositories' tests with it, and
# Forge installs their dependencies. Add those of other languages that your
# repositories need: nodejs and npm, python3-pip, cargo.
FROM golang:1.26-bookworm
RUN apt-get update \
 && apt-get install -y --no-install-recommends bubblewrap ca-certificates git \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --home-dir /var/lib/forge --create-home forge
COPY --from=build /forge /usr/local/bin/forge
USER forge
ENV FORGE_STATE_DIR=/var/lib/forge FORGE_LISTEN=0.0.0.0:8080
VOLUME /var/lib/forge
EXPOSE 8080
ENTRYPOINT ["forge"]
CMD ["serve"]
