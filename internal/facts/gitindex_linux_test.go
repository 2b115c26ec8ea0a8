package facts

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// entry is one of an index that a worker writes.
type entry struct {
	path string
	mode uint32
	id   string // in hex; empty: zeros
}

// makeIndex writes an index of version 2; parts are added after the entries.
func makeIndex(t testing.TB, hash int, entries []entry, parts ...string) []byte {
	t.Helper()
	out := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("DIRC"), 2), uint32(len(entries)))
	for _, e := range entries {
		begin := len(out)
		out = binary.BigEndian.AppendUint32(append(out, make([]byte, 24)...), e.mode)
		id := make([]byte, hash)
		if _, err := fmt.Sscanf(e.id+strings.Repeat("0", 2*hash-len(e.id)), "%x", &id); err != nil {
			t.Fatal(err)
		}
		out = append(append(out, make([]byte, 12)...), id...)
		out = append(binary.BigEndian.AppendUint16(out, uint16(min(len(e.path), 0xfff))), e.path...)
		for out = append(out, 0); (len(out)-begin)%8 != 0; {
			out = append(out, 0)
		}
	}
	return append(append(out, strings.Join(parts, "")...), make([]byte, hash)...) // git doesn't look at the checksum
}

// part is an extension.
func part(name string, body ...byte) string {
	return name + string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + string(body)
}

// numbers are big-endian.
func numbers(n ...uint32) (out []byte) {
	for _, v := range n {
		out = binary.BigEndian.AppendUint32(out, v)
	}
	return out
}

// repeating is an entry of version 4, that strips so much of the name before it;
// of what is kept it knows no more than that the name is the longer.
func repeating(strip byte, text string) []byte {
	length := map[string]byte{"it/x": 8, ".git/x": 7}[text]
	if length == 0 {
		length = byte(len(text))
	}
	return append(append(append(make([]byte, 60), 0, length), append([]byte{strip}, text...)...), 0)
}

// B8: a path that git doesn't add is told, in any spelling that a file system
// takes for .git, and an index that can be read in two ways isn't believed.
func TestIndex(t *testing.T) {
	const file, link, dir = 0o100644, 0o120000, 0o040000
	one := []entry{{path: "a", mode: file}} // ends at 76
	end := numbers(76)
	shared := part("link", bytes.Repeat([]byte{0xab}, 20)...)
	for _, tt := range []struct {
		name string
		data []byte
		want string // what is refused, or wrong
	}{
		{"none", makeIndex(t, 20, nil), ""},
		{"harmless", makeIndex(t, 20, []entry{{path: ".github/x", mode: file}, {path: ".gitignore", mode: file}, {path: "a/..b/git", mode: file}, {path: "s", mode: link}, {path: "sparse/", mode: dir}}, part("TREE", 1, 2, 3)), ""},
		{"a long name", makeIndex(t, 20, []entry{{path: strings.Repeat("n/", 3000) + "n", mode: file}}), ""},
		{".git", makeIndex(t, 20, []entry{{path: "a", mode: file}, {path: ".git/hooks/x", mode: file}}), ".git/hooks/x"},
		{".git below", makeIndex(t, 20, []entry{{path: "a/.GiT/x", mode: file}}), "a/.GiT/x"},
		{".git itself", makeIndex(t, 20, []entry{{path: ".git", mode: link}}), ".git"},
		{"HFS+", makeIndex(t, 20, []entry{{path: ".g\u200cit/x", mode: file}}), ".g\u200cit/x"},
		{"NTFS", makeIndex(t, 20, []entry{{path: "GIT~1/x", mode: file}}), "GIT~1/x"},
		{"NTFS, with an end", makeIndex(t, 20, []entry{{path: ".git . /x", mode: file}}), ".git . /x"},
		{"NTFS, a stream", makeIndex(t, 20, []entry{{path: ".git::$INDEX_ALLOCATION/x", mode: file}}), ".git::$INDEX_ALLOCATION/x"},
		{"the other separator", makeIndex(t, 20, []entry{{path: `a\.git\x`, mode: file}}), `a\.git\x`},
		{"a link of modules", makeIndex(t, 20, []entry{{path: ".gitmodules", mode: link}}), ".gitmodules"},
		{"out", makeIndex(t, 20, []entry{{path: "a/../../x", mode: file}}), "a/../../x"},
		{"absolute", makeIndex(t, 20, []entry{{path: "/etc/x", mode: file}}), "/etc/x"},
		{"an end without a name", makeIndex(t, 20, []entry{{path: "a/", mode: file}}), "a/"},
		{"SHA-256", makeIndex(t, 32, []entry{{path: "../x", mode: file}}), "../x"},
		{"shared", makeIndex(t, 20, []entry{{mode: file}}, shared), ""},
		{"no name", makeIndex(t, 20, []entry{{mode: file}}), "no name"},
		{"shared twice", makeIndex(t, 20, one, shared, shared), "shared index"},
		{"blocks", makeIndex(t, 20, one, part("IEOT", numbers(1, 12, 1)...), part("EOIE", append(end, make([]byte, 20)...)...)), ""},
		{"a block elsewhere", makeIndex(t, 20, one, part("IEOT", numbers(1, 20, 1)...)), "blocks"},
		{"a block too little", makeIndex(t, 20, one, part("IEOT", numbers(1)...)), "blocks"},
		{"version 4", append(append(numbers(0x44495243, 4, 2), append(repeating(0, "a/.g"), repeating(0, "it/x")...)...), make([]byte, 20)...), "a/.git/x"},
		{"version 4, blocks that repeat", append(append(numbers(0x44495243, 4, 2), append(repeating(0, "a"), append(repeating(0, ".git/x"), part("IEOT", numbers(1, 12, 1, 77, 1)...)...)...)...), make([]byte, 20)...), "blocks"},
		{"version 4, more than there is", append(append(numbers(0x44495243, 4, 1), repeating(1, "a")...), make([]byte, 20)...), "longer prefix"},
		{"ends elsewhere", makeIndex(t, 20, one, part("EOIE", append(numbers(92), make([]byte, 20)...)...)), "end-of-index"},
		{"ends elsewhere, inside another part", makeIndex(t, 20, one, part("UNTR", []byte(part("EOIE", append(end, make([]byte, 20)...)...))...)), "end-of-index"},
		{"text", []byte(strings.Repeat("text", 30)), "signature"},
		{"another version", append([]byte("DIRC\x00\x00\x00\x05\x00\x00\x00\x00"), make([]byte, 20)...), "version 5"},
		{"more entries than there are", append([]byte("DIRC\x00\x00\x00\x02\xff\xff\xff\xff"), make([]byte, 2000)...), ""},
		{"a part too long", makeIndex(t, 20, one, "TREE\x00\x00\x01\x00"), "longer than the file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hash := 20
			if tt.name == "SHA-256" {
				hash = 32
			}
			x, err := parseIndex(tt.data, hash)
			switch {
			case tt.name == "more entries than there are":
				if err == nil {
					t.Error("no error")
				}
			case err != nil && (tt.want == "" || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want %q", err, tt.want)
			case err == nil && x.refused != tt.want:
				t.Errorf("refused %q, want %q", x.refused, tt.want)
			}
		})
	}
}

// Each index that git itself writes can be read.
func TestIndexesOfGit(t *testing.T) {
	_, err := exec.LookPath("git")
	testutil.Require(t, err == nil, "no git")
	for _, tt := range []struct {
		name string
		args []string
		hash string
	}{
		{"version 2", nil, "sha1"},
		{"version 3", []string{"add", "-N", "new"}, "sha1"},
		{"version 4", []string{"update-index", "--index-version", "4"}, "sha1"},
		{"split", []string{"update-index", "--split-index"}, "sha1"},
		{"SHA-256", nil, "sha256"},
		{"SHA-256, version 4", []string{"update-index", "--index-version", "4"}, "sha256"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &gitCase{T: t, dir: t.TempDir(), home: t.TempDir()}
			c.git("init", "-q", "--object-format="+tt.hash)
			c.git("config", "index.threads", "3") // so many blocks
			for i := range 40 {
				c.put(fmt.Sprintf("a/directory/%02d/%s", i, strings.Repeat("n", i)+"x"), "")
			}
			c.git("add", ".")
			c.git("commit", "-q", "-m", "x")
			c.put("new", "")
			if tt.args != nil {
				c.git(tt.args...)
				c.put("more", "")
				c.git("add", "more")
			}
			data, err := os.ReadFile(filepath.Join(c.dir, ".git/index"))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("version %d, IEOT %v, EOIE %v, link %v", data[7], bytes.Contains(data, []byte("IEOT")), bytes.Contains(data, []byte("EOIE")), bytes.Contains(data, []byte("link")))
			for _, ch := range c.snapshot([]string{"."}).NotChecked() {
				t.Errorf("%s: %s", ch.Path, ch.Why)
			}
		})
	}
}

// No index crashes the reader, or lets a path pass that would lead out.
func FuzzIndex(f *testing.F) {
	const file = 0o100644
	f.Add(makeIndex(f, 20, []entry{{path: "a", mode: file}}, part("TREE", 1), part("IEOT", numbers(1, 12, 1)...)), "a/b")
	f.Add(makeIndex(f, 32, []entry{{path: ".git/x", mode: file}, {path: "b/../c", mode: file}}), "../a")
	f.Add(makeIndex(f, 20, []entry{{mode: file}}, part("link", bytes.Repeat([]byte{1}, 20)...)), ".git/a")
	f.Add(append(append(numbers(0x44495243, 4, 2), append(repeating(0, "a/.g"), repeating(0, "it/x")...)...), make([]byte, 20)...), "/")
	f.Fuzz(func(t *testing.T, data []byte, path string) {
		for _, hash := range []int{20, 32} {
			_, _ = parseIndex(data, hash)
			if path == "" || strings.ContainsRune(path, 0) {
				continue
			}
			x, err := parseIndex(makeIndex(t, hash, []entry{{path: "a", mode: file}, {path: path, mode: file}}), hash)
			if err != nil {
				t.Fatal(err)
			}
			bad := !filepath.IsLocal(path) || strings.Contains(strings.ToLower("/"+path+"/"), "/.git/")
			if bad && x.refused != path {
				t.Errorf("%q passes", path)
			}
		}
	})
}
