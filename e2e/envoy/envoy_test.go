package envoy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	rules "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dynamic_forward_proxy/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/dynamic_forward_proxy/v3"
	rbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	manager "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	upstream "github.com/envoyproxy/go-control-plane/envoy/extensions/rbac/matchers/upstream_ip_port/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

const files = "../../internal/egressacl/testdata/"

// read reads a file strictly: unknown fields and types are errors.
func read(t *testing.T, path string) *bootstrap.Bootstrap {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b := &bootstrap.Bootstrap{}
	if err := protojson.Unmarshal(text, b); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return b
}

// Each file is one that Envoy's protobufs take, in all its parts.
func TestProtobufs(t *testing.T) {
	names, err := filepath.Glob(files + "*.envoy")
	if err != nil || len(names) < 4 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if n := validate(t, name, read(t, name)); n < 8 {
			t.Errorf("%s: only %d messages were validated", name, n)
		}
	}
}

// validate validates a message and those packed in it, and returns how many.
func validate(t *testing.T, at string, m proto.Message) (n int) {
	t.Helper()
	if v, ok := m.(interface{ ValidateAll() error }); ok {
		if err := v.ValidateAll(); err != nil {
			t.Errorf("%s: %v", at, err)
		}
		n++
	}
	var visit func(m protoreflect.Message)
	visit = func(m protoreflect.Message) {
		if packed, ok := m.Interface().(*anypb.Any); ok {
			inner, err := packed.UnmarshalNew()
			if err != nil {
				t.Errorf("%s: %v", at, err)
				return
			}
			n += validate(t, at+" "+packed.TypeUrl, inner)
			return
		}
		m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			switch {
			case f.IsMap() && f.MapValue().Message() != nil:
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { visit(v.Message()); return true })
			case f.IsList() && f.Message() != nil:
				for i := range v.List().Len() {
					visit(v.List().Get(i).Message())
				}
			case !f.IsMap() && !f.IsList() && f.Message() != nil:
				visit(v.Message())
			}
			return true
		})
	}
	visit(m.ProtoReflect())
	return n
}

// chain are the filters of the file's listener.
func chain(t *testing.T, b *bootstrap.Bootstrap) *manager.HttpConnectionManager {
	t.Helper()
	m := &manager.HttpConnectionManager{}
	if err := b.StaticResources.Listeners[0].FilterChains[0].Filters[0].GetTypedConfig().UnmarshalTo(m); err != nil {
		t.Fatal(err)
	}
	return m
}

// request is one with the address that its name was looked up to; before the look-up
// there is none.
type request struct {
	authority string
	address   netip.Addr
}

// passes decides by the filters in their order, as Envoy does.
func passes(t *testing.T, m *manager.HttpConnectionManager, r request) bool {
	t.Helper()
	address := r.address
	r.address = netip.Addr{}
	for _, f := range m.HttpFilters {
		switch f.Name {
		case "envoy.filters.http.dynamic_forward_proxy":
			r.address = address
		case "envoy.filters.http.rbac":
			c := &rbac.RBAC{}
			if err := f.GetTypedConfig().UnmarshalTo(c); err != nil {
				t.Fatal(err)
			}
			matched := false
			for _, p := range c.Rules.Policies {
				if len(p.Principals) != 1 || !p.Principals[0].GetAny() {
					t.Fatal("a policy isn't for everybody")
				}
				for _, x := range p.Permissions {
					matched = matched || permits(t, x, r)
				}
			}
			if matched != (c.Rules.Action == rules.RBAC_ALLOW) {
				return false
			}
		}
	}
	return true
}

var compiled = map[string]*regexp.Regexp{}

func permits(t *testing.T, p *rules.Permission, r request) bool {
	t.Helper()
	switch x := p.Rule.(type) {
	case *rules.Permission_AndRules:
		for _, of := range x.AndRules.Rules {
			if !permits(t, of, r) {
				return false
			}
		}
		return true
	case *rules.Permission_OrRules:
		for _, of := range x.OrRules.Rules {
			if permits(t, of, r) {
				return true
			}
		}
		return false
	case *rules.Permission_NotRule:
		return !permits(t, x.NotRule, r)
	case *rules.Permission_Header:
		if x.Header.Name != ":authority" {
			t.Fatalf("a header %s", x.Header.Name)
		}
		text := x.Header.GetStringMatch().GetSafeRegex().GetRegex()
		re := compiled[text]
		if re == nil {
			re = regexp.MustCompile("^(?:" + text + ")$") // Envoy matches the whole value
			compiled[text] = re
		}
		return re.MatchString(r.authority)
	case *rules.Permission_Matcher:
		m := &upstream.UpstreamIpPortMatcher{}
		if err := x.Matcher.TypedConfig.UnmarshalTo(m); err != nil {
			t.Fatal(err)
		}
		a, err := netip.ParseAddr(m.UpstreamIp.AddressPrefix)
		if err != nil {
			t.Fatal(err)
		}
		return netip.PrefixFrom(a, int(m.UpstreamIp.PrefixLen.Value)).Contains(r.address)
	}
	t.Fatalf("a permission %T", p.Rule)
	return false
}

// The file decides each name and port as the guard does, or the row says that it can't.
func TestMatrix(t *testing.T) {
	m := chain(t, read(t, files+"matrix.envoy"))
	text, err := os.ReadFile(files + "matrix.rows")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); n++ {
		var row struct {
			Host       string
			Port       uint16
			Addresses  []string
			Guard, Not bool
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		host := strings.Trim(row.Host, "[]")
		r := request{authority: net.JoinHostPort(host, strconv.Itoa(int(row.Port))), address: netip.MustParseAddr("198.51.100.10")}
		if a, err := netip.ParseAddr(host); err == nil {
			r.address = a
		} else if len(row.Addresses) > 0 {
			r.address = netip.MustParseAddr(row.Addresses[0]) // the one that it compares
		}
		asked := []string{r.authority}
		if row.Port == 80 { // as plain HTTP has it
			asked = append(asked, row.Host)
		}
		for _, r.authority = range asked {
			if got := passes(t, m, r); got != row.Guard && !row.Not || got == row.Guard && row.Not {
				t.Errorf("%s (%s): it passes: %v, by the guard: %v", r.authority, r.address, got, row.Guard)
			}
		}
		if r.address = (netip.Addr{}); passes(t, m, r) {
			t.Errorf("%s passes without an address", r.authority)
		}
	}
	if n < 60 {
		t.Errorf("%d rows", n)
	}
}
