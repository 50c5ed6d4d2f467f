// Package inferencev1 is the gRPC interface between the gateway and the
// inference service of the examples.
package inferencev1

//go:generate sh -c "protoc --plugin=$(go tool -n protoc-gen-go) --plugin=$(go tool -n protoc-gen-go-grpc) -I ../.. --go_out=../.. --go_opt=paths=source_relative --go-grpc_out=../.. --go-grpc_opt=paths=source_relative internal/inferencev1/inference.proto"
