package testnet

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
)

// gitSite is a repository with one commit, as loose objects (gitrepository-layout(5),
// gitprotocol-http(5), "Dumb Clients"): a web server is all that it needs.
func gitSite() site {
	const root, by = "/greeting.git", "testnet <testnet@example.org> 0 +0000"
	s := site{}
	object := func(kind, content string) [sha1.Size]byte {
		raw := fmt.Appendf(nil, "%s %d\x00%s", kind, len(content), content)
		id := sha1.Sum(raw)
		var b bytes.Buffer
		w := zlib.NewWriter(&b)
		_, _ = w.Write(raw)
		_ = w.Close()
		name := hex.EncodeToString(id[:])
		s[root+"/objects/"+name[:2]+"/"+name[2:]] = file{"application/octet-stream", b.Bytes()}
		return id
	}
	blob := object("blob", Greeting+"\n")
	tree := object("tree", "100644 greeting.txt\x00"+string(blob[:]))
	commit := object("commit", fmt.Sprintf("tree %x\nauthor %s\ncommitter %s\n\nA greeting\n", tree, by, by))
	s[root+"/HEAD"] = file{"text/plain", []byte("ref: refs/heads/main\n")}
	s[root+"/info/refs"] = file{"text/plain", fmt.Appendf(nil, "%x\trefs/heads/main\n", commit)}
	return s
}
