# The image is one static binary with the default model inside, the certificates that
# downloads want, and a folder for models. docs/serving.md shows how to run it.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# Everybody may write to /models: docker run --user chooses who that is.
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /image/lutra . && \
    install -D -m 644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt && \
    install -d -m 1777 /image/models

FROM scratch
COPY --from=build /image /
# Settings are in the environment, not in CMD: they hold whatever arguments docker run is
# given, and for the health check too.
ENV LUTRA_SERVER_ADDR=0.0.0.0:8080 HF_HOME=/models
USER 65532:65532
VOLUME /models
EXPOSE 8080
# While a model is downloaded and loads the container is starting, not unhealthy.
HEALTHCHECK --interval=10s --timeout=5s --start-period=1h CMD ["/lutra", "health"]
ENTRYPOINT ["/lutra"]
CMD ["serve"]
