package files

import (
	"io"
	"log"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		os.Exit(Main(os.Stdin, os.Stderr))
	}
	log.SetOutput(io.Discard) // what go-fuse says of requests
	os.Exit(m.Run())
}

// asServer in the environment makes the test's program the file server.
const asServer = "WORKSHOP_TEST_FILES"
