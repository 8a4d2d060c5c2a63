// Writes down each whole request that net/http has read, and answers 299. As a CGI program it does
// the same for the server that runs it.
package main

import (
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
)

type reading struct {
	Port     string   `json:"port"`
	Method   string   `json:"method"`
	Target   string   `json:"target"`
	Host     []string `json:"host"`
	Injected []string `json:"injected"`
	Body     string   `json:"body"`
}

func (one reading) note() {
	line, err := json.Marshal(one)
	if err != nil {
		panic(err)
	}
	file, err := os.OpenFile(os.Getenv("READINGS"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if _, err := file.Write(append(line, '\n')); err != nil {
		panic(err)
	}
}

// A variable of CGI that is not there is no field.
func variable(name string) []string {
	if value, there := os.LookupEnv(name); there {
		return []string{value}
	}
	return nil
}

func cgi() {
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		return
	}
	reading{
		Port: os.Getenv("LISTENER"), Method: os.Getenv("REQUEST_METHOD"), Target: os.Getenv("REQUEST_URI"),
		Host: variable("HTTP_HOST"), Injected: variable("HTTP_X_INJECTED"), Body: hex.EncodeToString(body),
	}.note()
	os.Stdout.WriteString("Status: 299 Read\r\nContent-Type: text/plain\r\n\r\n")
}

func server(address, port string) *http.Server {
	answer := func(to http.ResponseWriter, request *http.Request) {
		// One that was cut is none.
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		reading{
			Port: port, Method: request.Method, Target: request.RequestURI,
			Host: []string{request.Host}, Injected: request.Header["X-Injected"],
			Body: hex.EncodeToString(body),
		}.note()
		to.WriteHeader(299)
	}
	return &http.Server{
		Addr: address + ":" + port, Handler: http.HandlerFunc(answer),
		// No HTTP/2.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
}

func main() {
	if os.Getenv("GATEWAY_INTERFACE") != "" {
		cgi()
		return
	}
	address, certificate, key := os.Args[1], os.Args[2], os.Args[3]
	go func() { panic(server(address, "443").ListenAndServeTLS(certificate, key)) }()
	panic(server(address, "80").ListenAndServe())
}
