package ports

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func always(Key, uint16) bool { return true }

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
	used := Use(slices.Clone(leases), k.Dir, k.Project, []Key{k})
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
	got := Use([]Lease{{Key: keep, Port: 1}, {Key: gone, Port: 2, Used: true}, {Key: elsewhere, Port: 3}}, "/a", "p", []Key{keep})
	want := []Lease{{Key: keep, Port: 1, Used: true}, {Key: elsewhere, Port: 3}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
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

// TestDamaged: a file that can't be read is never replaced, and the error says what to
// do.
func TestDamaged(t *testing.T) {
	for _, text := range []string{"", "{", `[{"dir":1}]`, `[{"other":1}]`, strings.Repeat(" ", maxFile+1)} {
		dir := t.TempDir()
		path := filepath.Join(dir, dirName, fileName)
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := In(dir).Change(t.Context(), func([]Lease) ([]Lease, error) { return nil, errors.New("called") })
		if err == nil || !strings.Contains(err.Error(), "remove the file") {
			t.Errorf("%.20q: %v", text, err)
		}
		if b, _ := os.ReadFile(path); string(b) != text {
			t.Errorf("%.20q: replaced", text)
		}
	}
}
