package deadletter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter"
	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter/pb"
	"github.com/holdfastdev/holdfast/internal/testprograms"
)

// A consumer in Python reads the message from the server over TCP, with nothing but a socket and Google's implementation of protocol buffers.
func TestAConsumerInPythonReadsADeadLetter(t *testing.T) {
	python := pythonWithProtobuf(t)
	s := newScene(t)
	ids := s.fails("DOWNLOAD_PROXY_EXHAUSTED")
	s.steps()
	s.server.Close()
	s.stream.Close()
	server, err := deadletter.StartServer(s.folder, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)

	file := filepath.Join(t.TempDir(), "deadletter.fds")
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(pb.File_deadletter_proto)}}
	text, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, python, "testdata/consumer.py", server.URL(), file)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var got struct {
		Sequence int               `json:"sequence"`
		Code     string            `json:"failure_code"`
		Message  string            `json:"failure_message"`
		Attempts int               `json:"attempts"`
		FailedAt int64             `json:"failed_at_ms"`
		Metadata map[string]string `json:"metadata"`
		Task     string            `json:"task_id"`
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got.Sequence != 1 || got.Code != "DOWNLOAD_PROXY_EXHAUSTED" || got.Attempts != 1 || got.FailedAt == 0 || got.Metadata["proxy"] != "eu#1" || got.Task != ids[0].String() || got.Message == "" {
		t.Errorf("%+v", got)
	}
}

// pythonWithProtobuf returns an interpreter that can import google.protobuf: that of the system, after its package was installed if necessary.
func pythonWithProtobuf(t *testing.T) string {
	t.Helper()
	find := func() string {
		for _, name := range []string{"python3", "/usr/bin/python3"} {
			if path, err := exec.LookPath(name); err == nil && exec.Command(path, "-c", "import google.protobuf").Run() == nil {
				return path
			}
		}
		return ""
	}
	if path := find(); path != "" {
		return path
	}
	err := testprograms.Install("python3-protobuf")
	path := find()
	if path == "" {
		t.Fatalf("this test needs Python with protobuf (Debian: apt-get install python3-protobuf): %v", err)
	}
	return path
}
