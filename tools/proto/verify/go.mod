module rds-csi/tools/proto/verify

go 1.25.0

require (
	github.com/bufbuild/protocompile v0.14.1
	google.golang.org/protobuf v1.36.12
)

// No Go code of it is used, only its csi.proto is read: `go mod tidy` would drop this line.
require github.com/container-storage-interface/spec v1.13.0

require golang.org/x/sync v0.8.0 // indirect
