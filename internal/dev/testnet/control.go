package testnet

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
)

// Control serves scripts:
//
//	GET  /counts                         a [Counts]
//	POST /reset
//	POST /answer?name=api.example.org    body: JSON list of [Record]
func (in *Internet) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /counts", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(in.Counts())
	})
	mux.HandleFunc("POST /reset", func(w http.ResponseWriter, r *http.Request) { in.Reset() })
	mux.HandleFunc("POST /answer", func(w http.ResponseWriter, r *http.Request) {
		var records []Record
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&records); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		in.Answer(r.URL.Query().Get("name"), records...)
	})
	return mux
}

func (in *Internet) startControl(path string) error {
	_ = os.Remove(path)
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: in.Control()}
	in.onClose(func() { srv.Close() })
	go srv.Serve(l)
	return os.Chmod(path, 0o666)
}
