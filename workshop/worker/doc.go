// Package worker reads worker files. A worker file says what a worker does,
// never where it runs. One file of this package per dialect.
//
// [Parse] reads one file, [Schemas.Parse] one of many with common bounds for
// their schemas. It is pure, and input of any size costs bounded memory and time.
//
// This API is v0: it may change until v1.
package worker
