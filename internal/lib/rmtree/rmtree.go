// Package rmtree measures and removes directories that others have filled and may be
// changing concurrently.
package rmtree
