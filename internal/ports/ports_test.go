package ports

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func always(Key, uint16) bool { return true }

var now = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// TestSameAgain: a checkout keeps its number, whatever others have since; others have
// others.
func TestSameAgain(t *testing.T) {
	a := Key{"/a", "p", "w", 8080}
	for _, other := range []Key{{"/b", "p", "w", 8080}, {"/a", "q", "w", 8080}, {"/a", "p", "x", 8080}, {"/a", "p", "w", 8081}} {
		leases, numbers, err := With(nil, []Key{a, other}, always, nil)
		if err != nil {
			t.Fatal(err)
		}
		if numbers[a] == numbers[other] {
			t.Errorf("%v and %v both have %d", a, other, numbers[a])
		}
		_, again, err := With(leases, []Key{other, a}, always, nil)
		if err != nil || again[a] != numbers[a] || again[other] != numbers[other] {
			t.Errorf("got %v, want %v (%v)", again, numbers, err)
		}
	}
	// Without its lease it has the number from its hash.
	_, numbers, _ := With(nil, []Key{a}, always, nil)
	if _, again, _ := With(nil, []Key{a}, always, nil); again[a] != numbers[a] || numbers[a] < First || numbers[a] > Last {
		t.Errorf("got %v, want %v from %d to %d", again, numbers, First, Last)
	}
}

// TestTaken: a number that another program has is passed over until the workshop came
// up with it, and kept from then on.
func TestTaken(t *testing.T) {
	k := Key{"/a", "p", "w", 8080}
	leases, numbers, err := With(nil, []Key{k}, always, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := numbers[k]
	notFirst := func(_ Key, n uint16) bool { return n != first }
	_, numbers, err = With(leases, []Key{k}, notFirst, nil)
	if err != nil || numbers[k] == first {
		t.Errorf("got %d again, %v", numbers[k], err)
	}
	// Its own project has it: an `up` was killed before it came up.
	if _, numbers, err = With(leases, []Key{k}, notFirst, func(n uint16) bool { return n == first }); err != nil || numbers[k] != first {
		t.Errorf("got %d, %v; want %d", numbers[k], err, first)
	}
	used := Use(leases, k.Dir, k.Project, leases, now)
	after, numbers, err := With(used, []Key{k}, notFirst, nil)
	if err != nil || numbers[k] != first || !slices.Equal(after, used) {
		t.Errorf("got %v, %v, %v; want %d", after, numbers, err, first)
	}
	// Another worker's lease is never given away, free or not.
	other := Key{"/b", "p", "w", 8080}
	_, numbers, err = With(used, []Key{other}, func(_ Key, n uint16) bool { return n == first }, nil)
	if err == nil {
		t.Errorf("got %v, want an error: the only free number is leased", numbers)
	}
}

// TestUseGivesUpOthers: ports that a project has no more are free again; those of other
// directories stay.
func TestUseGivesUpOthers(t *testing.T) {
	keep, gone, elsewhere := Key{"/a", "p", "w", 1}, Key{"/a", "p", "w", 2}, Key{"/b", "p", "w", 2}
	got := Use([]Lease{{Key: keep, Port: 1}, {Key: gone, Port: 2, Used: true}, {Key: elsewhere, Port: 3}}, "/a", "p", []Lease{{Key: keep, Port: 1, Host: "::1"}}, now)
	want := []Lease{{Key: keep, Port: 1, Host: "::1", Since: now, Used: true}, {Key: elsewhere, Port: 3}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestReserved: what a file reserves is given to nobody else, several files may reserve one
// number, and what is noted first keeps its time.
func TestReserved(t *testing.T) {
	a, b := Key{"/a", "p", "w", 8080}, Key{"/b", "p", "w", 8080}
	_, numbers, _ := With(nil, []Key{a}, always, nil)
	n := numbers[a]
	of := func(k Key, port uint16) Lease { return Lease{Key: k, Port: port, Host: "127.0.0.1", Reserved: true} }
	leases := Note(nil, []Lease{of(b, n)}, now)
	if _, numbers, _ = With(leases, []Key{a}, always, nil); numbers[a] == n {
		t.Errorf("%d, which is reserved, was chosen", n)
	}
	// One that was chosen before is exchanged unless the workshop came up with it.
	chosen := append(leases, Lease{Key: a, Port: n})
	if _, numbers, _ = With(chosen, []Key{a}, always, nil); numbers[a] == n {
		t.Errorf("%d, which is reserved now, was kept", n)
	}
	chosen[1].Used = true
	if _, numbers, _ = With(chosen, []Key{a}, always, nil); numbers[a] != n {
		t.Errorf("got %d, want %d: the workshop came up with it", numbers[a], n)
	}
	// The file left it open since.
	leases, numbers, _ = With(leases, []Key{b}, always, nil)
	if numbers[b] == n || leases[0].Reserved {
		t.Errorf("got %v, want a number that was chosen", leases)
	}

	later := now.Add(time.Hour + time.Millisecond)
	leases = Note(Note(nil, []Lease{of(a, 8080)}, now), []Lease{of(b, 8080)}, later)
	leases = Use(leases, "/b", "p", []Lease{of(b, 8080)}, later.Add(time.Hour))
	second := of(b, 8080)
	second.Since, second.Used = now.Add(time.Hour), true
	if len(leases) != 2 || leases[1] != second {
		t.Errorf("got %v, want %v", leases, second)
	}
	if others := Others(leases, leases[0]); !slices.Equal(others, leases[1:]) {
		t.Errorf("others are %v, want %v", others, leases[1:])
	}
	// The lease was given up since it was noted.
	if got := Use(nil, "/b", "p", []Lease{of(b, 8080)}, later); len(got) != 1 || !got[0].Used || got[0].Key != b {
		t.Errorf("got %v, want one that is used", got)
	}
	// What it is up with stays until it comes up with another number.
	if got := Note(leases, []Lease{of(b, 9090)}, later); !slices.Equal(got, leases) {
		t.Errorf("got %v, want %v", got, leases)
	}
	got := Use(leases, "/b", "p", []Lease{of(b, 9090)}, later)
	if len(got) != 2 || got[1].Port != 9090 || !got[1].Since.Equal(now.Add(time.Hour)) {
		t.Errorf("got %v", got)
	}
}

func TestMeet(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"127.0.0.1:80", "127.0.0.1:80", true}, {"127.0.0.1:80", "127.0.0.1:81", false}, {"127.0.0.1:80", "127.0.0.2:80", false},
		{"127.0.0.1:80", "0.0.0.0:80", true}, {"[::1]:80", "[::]:80", true}, {"127.0.0.1:80", "[::]:80", false}, {"[::1]:80", "127.0.0.1:80", false},
	} {
		a, b := netip.MustParseAddrPort(tt.a), netip.MustParseAddrPort(tt.b)
		if Meet(a, b) != tt.want || Meet(b, a) != tt.want {
			t.Errorf("%s and %s: want %v", a, b, tt.want)
		}
	}
}

// TestAtOnce: commands at the same time never take one number, though all of it looks
// free to each of them.
func TestAtOnce(t *testing.T) {
	r := In(t.TempDir())
	var mu sync.Mutex
	got := map[uint16]Key{}
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			k := Key{"/same", "p", "w", uint16(1024 + i)}
			err := r.Change(t.Context(), func(all []Lease) ([]Lease, error) {
				all, numbers, err := With(all, []Key{k}, func(_ Key, n uint16) bool { return n%64 == 0 }, nil)
				mu.Lock()
				defer mu.Unlock()
				if by, taken := got[numbers[k]]; taken {
					t.Errorf("%v and %v both have %d", k, by, numbers[k])
				}
				got[numbers[k]] = k
				return all, err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if all, err := r.Leases(); err != nil || len(all) != 40 {
		t.Errorf("%d leases, %v", len(all), err)
	}
}

// TestAnyDirectory: a directory whose name isn't text has its number again, too.
func TestAnyDirectory(t *testing.T) {
	r := In(t.TempDir())
	k := Key{Dir: "/a/\xff\"b", Project: "p", Worker: "w", Target: 1024}
	var first uint16
	for range 2 {
		if err := r.Change(t.Context(), func(all []Lease) ([]Lease, error) {
			all, numbers, err := With(all, []Key{k}, always, nil)
			if len(all) != 1 || first != 0 && numbers[k] != first {
				t.Errorf("got %v, want %d alone", all, first)
			}
			first = numbers[k]
			return all, err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := r.Leases(); err != nil || len(all) != 1 || all[0].Dir != k.Dir {
		t.Errorf("got %v, %v", all, err)
	}
}

// TestAll: each number is given once, and then an error; it takes no time.
func TestAll(t *testing.T) {
	var keys []Key
	for i := range Last - First + 1 {
		keys = append(keys, Key{"/a", "p", "w", uint16(i)})
	}
	leases, numbers, err := With(nil, keys, always, nil)
	if err != nil || len(leases) != len(keys) || len(numbers) != len(keys) {
		t.Fatalf("%d leases, %v", len(leases), err)
	}
	if _, _, err := With(leases, []Key{{"/b", "p", "w", 1}}, always, nil); err == nil {
		t.Error("one more than there are")
	}
}

// registry returns one whose file has a text.
func registry(t *testing.T, text string) (r Registry, path string) {
	t.Helper()
	r = In(t.TempDir())
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.Path(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return r, r.Path()
}

const oneLease = `[{"dir":"/a","project":"p","worker":"w","target":8080,"port":26000}]`

// TestDamaged: a file that can't be read, or is of another program, is never replaced, and
// the error says what to do.
func TestDamaged(t *testing.T) {
	for _, text := range []string{
		"", "{", `[{"dir":1}]`, `[{"other":1}]`, strings.Repeat(" ", maxFile+1), oneLease[:len(oneLease)-1], oneLease + "]", `[{}]`, "{}",
		strings.Replace(oneLease, "/a", "a", 1), strings.Replace(oneLease, "26000", "0", 1), strings.Replace(oneLease, "26000", "65536", 1),
		strings.Replace(oneLease, "8080", "0", 1), strings.Replace(oneLease, `"p"`, `""`, 1), strings.Replace(oneLease, `"p"`, `"p","host":"localhost"`, 1),
		strings.Replace(oneLease, "}]", "},"+oneLease[1:], 1),
	} {
		r, path := registry(t, text)
		err := r.Change(t.Context(), func([]Lease) ([]Lease, error) { return nil, errors.New("called") })
		if err == nil || !strings.Contains(err.Error(), "remove the file") {
			t.Errorf("%.80q: %v", text, err)
		}
		if b, _ := os.ReadFile(path); string(b) != text {
			t.Errorf("%.80q: replaced", text)
		}
	}
}

// TestEarlier: the file of an earlier version has neither address nor time.
func TestEarlier(t *testing.T) {
	r, _ := registry(t, oneLease)
	all, err := r.Leases()
	if err != nil || len(all) != 1 || all[0].Address().String() != "127.0.0.1:26000" || !all[0].Since.IsZero() {
		t.Errorf("got %v, %v", all, err)
	}
}

// TestNotOwn: a registry that others can change, or a link, is neither read nor replaced.
func TestNotOwn(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(r Registry) error
		says  string
		do    string
	}{
		"file of others": {func(r Registry) error { return os.Chmod(r.Path(), 0o602) }, "leases.json can be changed by others (mode 0602)", "chmod go-w "},
		"directory":      {func(r Registry) error { return os.Chmod(r.dir, 0o720) }, "ports can be changed by others (mode 0720)", "chmod go-w "},
		"link": {func(r Registry) error {
			return errors.Join(os.Rename(r.Path(), r.Path()+".else"), os.Symlink(r.Path()+".else", r.Path()))
		}, "leases.json is a symbolic link", "rm "},
		"of another user": {func(r Registry) error { return os.Chown(r.Path(), 12345, -1) }, "leases.json belongs to the user 12345, not to you", "sudo chown "},
	} {
		t.Run(name, func(t *testing.T) {
			r, path := registry(t, oneLease)
			if err := tt.spoil(r); errors.Is(err, os.ErrPermission) {
				t.Skip(err) // needs root
			} else if err != nil {
				t.Fatal(err)
			}
			called := false
			err := r.Change(t.Context(), func([]Lease) ([]Lease, error) { called = true; return nil, nil })
			bad, ok := errors.AsType[*FileError](err)
			if !ok || called || !strings.Contains(err.Error(), tt.says) || !strings.HasPrefix(bad.Do, tt.do) {
				t.Errorf("got %#v, called %v", err, called)
			}
			if b, _ := os.ReadFile(path); string(b) != oneLease {
				t.Errorf("the file has %q now", b)
			}
		})
	}
}

// FuzzParse: a text is refused, or what it says is what is written again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(oneLease))
	f.Add([]byte(`[{"dir":"\"/a/\\xff\"","project":"p","worker":"w","target":8080,"port":1,"host":"::1","since":"2026-05-04T03:02:01Z","reserved":true,"used":true}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := parse(data)
		if err != nil {
			return
		}
		b, err := format(all)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parse(b)
		if err != nil || len(again) != len(all) {
			t.Fatalf("%q: %v", b, err)
		}
		for i := range all {
			if !again[i].Since.Equal(all[i].Since) {
				t.Fatalf("got %v, want %v", again[i].Since, all[i].Since)
			}
			if again[i].Since = all[i].Since; again[i] != all[i] {
				t.Fatalf("got %v, want %v", again[i], all[i])
			}
			_ = all[i].Address()
		}
	})
}
