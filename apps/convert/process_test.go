package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfastdev/holdfast/apps/internal/pdf/pdftest"
)

// newClient is a browser without a page.
func newClient(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

// formOf is a form with a file in it, as a browser sends it.
func formOf(name string, pdf []byte) (kind string, body *bytes.Buffer) {
	body = new(bytes.Buffer)
	form := multipart.NewWriter(body)
	part, _ := form.CreateFormFile("file", name) // a buffer takes everything
	_, _ = part.Write(pdf)
	_ = form.Close()
	return form.FormDataContentType(), body
}

// sends uploads a PDF, and answers with its job.
func sends(t *testing.T, client *http.Client, at, name string, pdf []byte) (v view) {
	t.Helper()
	kind, body := formOf(name, pdf)
	response, err := client.Post(at+"/api/upload", kind, body)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusCreated {
		t.Fatalf("the upload is answered with %d: %s %v", response.StatusCode, text, err)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// viewOf reads a job from the API.
func viewOf(t *testing.T, client *http.Client, at, id string) (v view) {
	t.Helper()
	asks(t, client, at+"/api/jobs/"+id, &v)
	return v
}

// asks reads an answer in JSON.
func asks(t *testing.T, client *http.Client, address string, to any) {
	t.Helper()
	response, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(to); err != nil {
		t.Fatal(err)
	}
}

// Acceptance of issue 7: a real PDF becomes XML; stop the gateway process and see the banner; start it and see everything finish.
func TestConvertAloneRunsEverythingAndOutlivesItsGateway(t *testing.T) {
	gatewayAddr := freeAddress(t)
	env := []string{"DATA_DIR=" + t.TempDir(), "DATABASE_URL=", "UPLOADS_DIR=", "RESULTS_DIR=", "GATEWAY_URL=", "ADDR=127.0.0.1:0", "GATEWAY_ADDR=" + gatewayAddr, "GATEWAY_READER=go", "CIRCUIT_COOLDOWN_MS=500", "HEALTH_PROBE_MS=200"}
	p := launch(t, env, "The page is at ")
	at, client := p.says("The page is at "), newClient(t)
	pid, err := strconv.Atoi(strings.Fields(p.says("The gateway is process "))[0])
	if err != nil {
		t.Fatal(err)
	}
	first := sends(t, client, at, "hello.pdf", pdftest.Simple(t, "Hello"))
	poll(t, "the first file is converted", func() bool { return viewOf(t, client, at, first.ID).Status == "complete" })
	if code, xml := statusOf(client, at+"/api/jobs/"+first.ID+"/download"); code != http.StatusOK || !strings.Contains(xml, "Hello") || !strings.Contains(xml, "<?xml") {
		t.Errorf("%d %s", code, xml)
	}

	gateway, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := gateway.Kill(); err != nil {
		t.Fatal(err)
	}
	second := sends(t, client, at, "again.pdf", pdftest.Simple(t, "Again"))
	poll(t, "the banner", func() bool {
		_, body := statusOf(client, at+"/api/gateway")
		return strings.Contains(body, "Converter busy — jobs will resume automatically.")
	})
	if v := viewOf(t, client, at, second.ID); v.Status != "queued" && v.Status != "processing" {
		t.Errorf("while the gateway is down: %+v", v)
	}
	if !strings.Contains(p.output(), "gateway_ended") {
		t.Errorf("the log does not say that the gateway has ended:\n%s", p.output())
	}

	other := launch(t, env, "The gateway is at ", "gateway")
	poll(t, "the second file is converted", func() bool { return viewOf(t, client, at, second.ID).Status == "complete" })
	poll(t, "the banner goes", func() bool {
		_, body := statusOf(client, at+"/api/gateway")
		return strings.Contains(body, `"message":null`)
	})
	stops(t, p)
	if code, _ := statusOf(client, "http://"+gatewayAddr+"/healthz"); code != http.StatusOK {
		t.Error("a gateway that this process did not start was stopped")
	}
	stops(t, other)
}

// stops asks a process to stop, and it ends well.
func stops(t *testing.T, p *process) {
	t.Helper()
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	poll(t, "it stops", func() bool { return over(p.ended) })
	if code := p.ProcessState.ExitCode(); code != 0 {
		t.Errorf("it ends with %d:\n%s", code, p.output())
	}
}

func TestAGatewayEndsWithItsParentProcess(t *testing.T) {
	for how, end := range map[string]func(t *testing.T, p *process){"SIGTERM": stops, "kill -9": func(_ *testing.T, p *process) { p.kill() }} {
		t.Run(how, func(t *testing.T) {
			gatewayAddr := freeAddress(t)
			p := launch(t, []string{"DATA_DIR=" + t.TempDir(), "GATEWAY_URL=", "ADDR=127.0.0.1:0", "GATEWAY_ADDR=" + gatewayAddr, "STOP_GRACE_SEC=3600"}, "The page is at ")
			newCaller(t, p.says("The page is at ")).listens() // an open event stream does not delay a stop
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			poll(t, "the gateway answers", func() bool {
				code, _ := statusOf(client, "http://"+gatewayAddr+"/healthz")
				return code == http.StatusOK
			})
			end(t, p)
			poll(t, "the gateway accepts no connections", func() bool { code, _ := statusOf(client, "http://"+gatewayAddr+"/healthz"); return code == 0 })
		})
	}
}

// 001 section 3.5: SIGTERM lets what is under way finish.
func TestAnUploadUnderWayIsFinishedWhenTheProcessIsAskedToStop(t *testing.T) {
	uploads := t.TempDir()
	p := launch(t, []string{"DATA_DIR=" + t.TempDir(), "UPLOADS_DIR=" + uploads, "GATEWAY_URL=http://127.0.0.1:1", "ADDR=127.0.0.1:0"}, "The page is at ", "web")
	at, pdf := p.says("The page is at "), pdfNumber(1)
	body, sink := io.Pipe()
	form := multipart.NewWriter(sink)
	half, asked := make(chan struct{}), make(chan struct{})
	go func() {
		part, err := form.CreateFormFile("file", "slow.pdf")
		if err == nil {
			_, err = part.Write(pdf[:len(pdf)/2])
		}
		close(half)
		<-asked
		if err == nil {
			_, err = part.Write(pdf[len(pdf)/2:])
		}
		_ = form.Close()
		_ = sink.CloseWithError(err)
	}()
	answer := make(chan string, 1)
	go func() {
		response, err := http.Post(at+"/api/upload", form.FormDataContentType(), body)
		if err != nil {
			answer <- err.Error()
			return
		}
		defer response.Body.Close()
		answer <- fmt.Sprint(response.StatusCode)
	}()
	<-half
	poll(t, "the file is being written", func() bool { return len(filesIn(t, uploads)) > 0 })
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.says(`{"time"`) // it says that it was asked
	poll(t, "new connections are refused", func() bool {
		code, _ := statusOf(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, at+"/healthz")
		return code == 0
	})
	close(asked)
	if got := <-answer; got != "201" {
		t.Errorf("an upload under way is answered with %s\n%s", got, p.output())
	}
	poll(t, "it stops", func() bool { return over(p.ended) })
	if code := p.ProcessState.ExitCode(); code != 0 {
		t.Errorf("it ends with %d:\n%s", code, p.output())
	}
}
