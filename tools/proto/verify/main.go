// Compares two .proto files as descriptors: everything but comments, layout and order must be equal.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/types/descriptorpb"
)

func main() {
	ours := flag.String("ours", "", "the file to check")
	published := flag.String("published", "", "the file it has to agree with")
	flag.Parse()
	if *ours == "" || *published == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := verify(*ours, *published); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func verify(oursPath, publishedPath string) error {
	ours, err := parse(oursPath)
	if err != nil {
		return err
	}
	published, err := parse(publishedPath)
	if err != nil {
		return err
	}
	counts := count(published)
	if counts.services == 0 || counts.fields == 0 {
		return fmt.Errorf("%s defines nothing to compare with", publishedPath)
	}
	differences := compare(factsOf(ours), factsOf(published))
	for _, difference := range differences {
		fmt.Println(difference)
	}
	if len(differences) > 0 {
		return fmt.Errorf("%s: %d differences from the published definition", oursPath, len(differences))
	}
	fmt.Printf("%s agrees with the published definition: %s\n", filepath.Base(oursPath), counts)
	return nil
}

func parse(path string) (*descriptorpb.FileDescriptorProto, error) {
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			ImportPaths: []string{filepath.Dir(path)},
		}),
	}
	files, err := compiler.Compile(context.Background(), filepath.Base(path))
	if err != nil {
		return nil, fmt.Errorf("cannot parse %s: %w", path, err)
	}
	return protoutil.ProtoFromFileDescriptor(files[0]), nil
}
