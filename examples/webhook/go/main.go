// Command go receives webhooks of Holdfast. It needs only the standard library.
//
//	HOLDFAST_SECRET_SHOP=whsec_... go run . 127.0.0.1:8097
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const tolerance = 5 * time.Minute

// verify returns an error unless the request was signed with the secret within the last minutes.
func verify(secret string, header http.Header, body []byte) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) == 0 {
		return errors.New("the secret of this receiver is not valid")
	}
	sent, err := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(sent, 0)).Abs() > tolerance {
		return errors.New("the timestamp is missing, too old or in the future")
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", header.Get("webhook-id"), sent, body)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, signature := range strings.Fields(header.Get("webhook-signature")) { // several while a secret is exchanged
		if hmac.Equal([]byte(signature), []byte(expected)) {
			return nil
		}
	}
	return errors.New("no signature is made with this secret")
}

func receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err == nil {
		err = verify(os.Getenv("HOLDFAST_SECRET_SHOP"), r.Header, body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	// Your code. A delivery may come again with the same webhook-id: store the id with what you do.
	fmt.Printf("%s %s\n", r.Header.Get("webhook-id"), body)
	w.WriteHeader(http.StatusNoContent)
}

func main() {
	server := &http.Server{Addr: os.Args[1], Handler: http.HandlerFunc(receive), ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}
