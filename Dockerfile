# Builds `rl` and puts it into an image of its own.
#
#   docker build -t ringleader .
#   docker run --rm ringleader rl --help
#
# Lending machines from inside a container needs what the sandbox needs of its host: run it with
#   --privileged --cgroupns=host --pid=host -v /var/lib/ringleader:/var/lib/ringleader
# so that members outlive the container and their disks do too. A container without these still
# serves as a client: mount the daemon's socket at /run/ringleader/rl.sock.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked && cp target/*/release/rl /rl

FROM debian:bookworm-slim
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends openssh-client sudo \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /rl /usr/bin/rl
COPY config/daemon.toml /etc/ringleader/daemon.toml
VOLUME /var/lib/ringleader
CMD ["rl", "daemon", "run"]
