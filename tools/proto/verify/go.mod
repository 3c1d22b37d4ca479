module rds-csi/tools/proto/verify

go 1.25.0

require (
	github.com/bufbuild/protocompile v0.14.1
	google.golang.org/protobuf v1.36.12
)

// No Go code of these is used, only their .proto files are read: `go mod tidy` would drop these lines.
require (
	github.com/container-storage-interface/spec v1.13.0
	k8s.io/kubelet v0.34.1
)

require golang.org/x/sync v0.8.0 // indirect
