package cli

import (
	"context"
	"io/fs"
)

type documentsKey struct{}

// withDocuments gives commands the repository's documents.
func withDocuments(ctx context.Context, documents fs.FS) context.Context {
	return context.WithValue(ctx, documentsKey{}, documents)
}

// documentsOf returns the repository's documents; nil: there are none, as in tests.
func documentsOf(ctx context.Context) fs.FS {
	documents, _ := ctx.Value(documentsKey{}).(fs.FS)
	return documents
}
