package git

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"github.com/llmdo/workshop/firewall/request"
	"github.com/llmdo/workshop/internal/lib/plainjson"
)

// Limits of what git-lfs and its servers say of objects, in bytes and in numbers. A client asks
// for 100 at once.
const (
	maxBatch        = 64 << 10
	maxBatchAnswer  = 256 << 10
	maxBatchObjects = 500
	maxAnswered     = 12 // parts of an object: itself, its actions, two of each action, an error
)

// Batch is a request for where objects of LFS are, or are to be sent (git-lfs, batch API).
type Batch struct {
	Operation string        `json:"operation"` // download, upload
	Transfers []string      `json:"transfers"`
	Ref       *batchRef     `json:"ref,omitempty"`
	Objects   []batchObject `json:"objects"`
	Hash      string        `json:"hash_algo,omitempty"`
}

type batchRef struct {
	Name string `json:"name"`
}

type batchObject struct {
	ID   string `json:"oid"`
	Size int64  `json:"size"`
}

// ReadBatch reads a request. What it has of others than the basic transfer is left out; an
// error says what isn't understood.
func ReadBatch(r io.Reader) (b Batch, err error) {
	data, err := readAll(r, maxBatch)
	if err != nil {
		return b, err
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return b, malformed("a batch of LFS: %v", err)
	}
	b.Transfers = []string{"basic"}
	switch {
	case b.Operation != "download" && b.Operation != "upload":
		return b, malformed("the operation %.40q of LFS", b.Operation)
	case b.Hash != "" && b.Hash != "sha256":
		return b, malformed("the hash %.40q of LFS", b.Hash)
	case len(b.Objects) == 0 || len(b.Objects) > maxBatchObjects:
		return b, malformed("%d objects of LFS, want 1 to %d", len(b.Objects), maxBatchObjects)
	}
	for _, o := range b.Objects {
		if !request.IsLFSObject(o.ID) || o.Size < 0 {
			return b, malformed("the object %.80q of LFS", o.ID)
		}
	}
	return b, nil
}

// Uploads reports whether objects are to be sent.
func (b Batch) Uploads() bool { return b.Operation == "upload" }

// Bytes are the request anew, so that no server reads more in it than ReadBatch.
func (b Batch) Bytes() []byte {
	out, err := json.Marshal(b)
	if err != nil {
		panic(err) // texts and numbers
	}
	return out
}

// Action is how a client reaches an object: one request, by another address.
type Action struct {
	Href    string            `json:"href"`
	Header  map[string]string `json:"header,omitempty"`
	In      int               `json:"expires_in,omitempty"`
	Expires *time.Time        `json:"expires_at,omitempty"`
}

type batchAnswer struct {
	Transfer string           `json:"transfer,omitempty"`
	Objects  []answeredObject `json:"objects"`
	Hash     string           `json:"hash_algo,omitempty"`
}

type answeredObject struct {
	batchObject
	Authenticated bool               `json:"authenticated,omitempty"`
	Actions       map[string]*Action `json:"actions,omitempty"`
	Error         *objectError       `json:"error,omitempty"`
}

type objectError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// ReadAnswer reads a server's answer to a batch and returns it anew, with each action as change
// leaves it; where change returns words, the object has them as its error and no action. name
// is download, upload or verify.
func ReadAnswer(r io.Reader, change func(name string, a *Action) (refused string)) ([]byte, error) {
	data, err := readAll(r, maxBatchAnswer)
	if err != nil {
		return nil, err
	}
	// What is parsed costs more than its text, so it is counted before.
	if n := bytes.Count(data, []byte("{")); n > maxBatchObjects*maxAnswered {
		return nil, malformed("an answer of LFS with %d parts", n)
	}
	var answer batchAnswer
	if err := json.Unmarshal(data, &answer); err != nil || len(answer.Objects) > maxBatchObjects {
		return nil, malformed("an answer of LFS")
	}
	if answer.Transfer != "" && answer.Transfer != "basic" {
		return nil, malformed("the transfer %.40q of LFS", answer.Transfer)
	}
	for i := range answer.Objects {
		o := &answer.Objects[i]
		for name, a := range o.Actions {
			if a == nil || name != "download" && name != "upload" && name != "verify" {
				delete(o.Actions, name)
				continue
			}
			if refused := change(name, a); refused != "" {
				o.Actions, o.Error = nil, &objectError{403, refused}
				break
			}
		}
	}
	out, err := plainjson.Marshal(answer)
	if err == nil && len(out) > maxBatchAnswer {
		err = malformed("an answer of LFS of more than %d bytes", maxBatchAnswer)
	}
	return out, err
}

// readAll reads a message of at most limit bytes.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = malformed("a message of LFS of more than %d bytes", limit)
	}
	return data, err
}
