# Static, non-root; the default model is inside the binary.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /lutra .

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /lutra /lutra
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["/lutra", "health"]
ENTRYPOINT ["/lutra"]
CMD ["serve", "--addr", "0.0.0.0:8080"]
