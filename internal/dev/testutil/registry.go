package testutil

import (
	"io"
	"log"
	"net/http"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Registry is an empty registry of images and artifacts, in memory. each, if given, sees
// requests first and reports whether it has answered.
func Registry(each func(http.ResponseWriter, *http.Request) bool) http.Handler {
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if each == nil || !each(w, r) {
			inner.ServeHTTP(w, r)
		}
	})
}
