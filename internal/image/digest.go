package image

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strings"
)

// digestOf returns the digest of data in the form that identifies images.
func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// checkDigest refuses anything but a SHA-256 digest: file names and URLs are made of
// it.
func checkDigest(d string) error {
	sum, ok := strings.CutPrefix(d, "sha256:")
	if !ok || len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "" {
		return fmt.Errorf("%.80q is not a SHA-256 digest", d)
	}
	return nil
}

// DigestError means that content doesn't have the requested digest: it is damaged or
// was replaced.
type DigestError struct{ What, Want, Got string }

// Error has both digests.
func (e *DigestError) Error() string {
	return fmt.Sprintf("%s is damaged or was replaced: digest %[3]s, want %[2]s", e.What, e.Want, e.Got)
}

// verified reads a blob and fails at its end, or beyond its size, unless it has the
// digest. A negative size is unknown. The caller must read until EOF.
type verified struct {
	r    io.Reader
	what string
	want string
	size int64
	sum  hash.Hash
	n    int64
}

func verify(r io.Reader, what, digest string, size int64) *verified {
	return &verified{r: r, what: what, want: digest, size: size, sum: sha256.New()}
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.r.Read(p)
	v.sum.Write(p[:n])
	if v.n += int64(n); v.size >= 0 && v.n > v.size {
		return n, fmt.Errorf("%s is longer than %d bytes", v.what, v.size)
	}
	if err == io.EOF {
		if v.size >= 0 && v.n < v.size {
			return n, fmt.Errorf("%s ends after %d of %d bytes", v.what, v.n, v.size)
		}
		if got := "sha256:" + hex.EncodeToString(v.sum.Sum(nil)); got != v.want {
			return n, &DigestError{What: v.what, Want: v.want, Got: got}
		}
	}
	return n, err
}

// readVerified reads all of a small blob.
func readVerified(r io.Reader, what string, d descriptor, limit int64) ([]byte, error) {
	if d.Size < 0 || d.Size > limit {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are allowed", what, d.Size, limit)
	}
	var b bytes.Buffer
	_, err := io.Copy(&b, verify(r, what, d.Digest, d.Size))
	return b.Bytes(), err
}
