# One static binary and the roots of trust it needs to reach PostgreSQL by TLS;
# no shell, no user but its own. Both base images can be replaced, so that a
# machine without a registry builds from an image of its own.
ARG BUILD_IMAGE=golang:1.26
ARG RUN_IMAGE=scratch

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY . .
# No cgo: nothing of the build image's C library may be needed where it runs.
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /out/ration ./cmd/ration

FROM ${RUN_IMAGE}
COPY --from=build /etc/ssl/certs/ /etc/ssl/certs/
COPY --from=build /out/ration /ration
# Numeric, because scratch knows no names and Kubernetes' runAsNonRoot asks for it.
USER 65532:65532
ENTRYPOINT ["/ration"]
CMD ["serve"]
