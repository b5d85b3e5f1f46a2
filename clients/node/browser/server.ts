/** A page over HTTP, and an echo over WebSocket, on port 8000. */
import { createServer } from "node:http";
import { WebSocketServer } from "ws";

const server = createServer((request, response) => {
  const isPage = request.url === "/";
  response.setHeader("Content-Type", isPage ? "text/html" : "text/plain");
  response.end(isPage ? "<!doctype html><title>page</title>" : "answer");
});
new WebSocketServer({ server }).on("connection", (socket) => {
  socket.on("message", (message) => socket.send(message));
});
server.listen(8000, "0.0.0.0");
