// Written by `tenure install opencode`; `tenure uninstall opencode` takes it out again.
//
// Before a tool changes files, Tenure is asked whether this session may, and OpenCode waits for the answer. Whoever cannot
// be asked has not said yes: then every tool that may write is refused. Commands run in Tenure's bash, which asks too.

import { spawn } from "node:child_process"

const PROGRAM = "/path/to/tenure"
const SHELL = "/path/to/tenure-bash"
const PATIENCE_MS = 240_000
const MOST_ANSWER = 1 << 20

// These change no file. Everything else may, above all what nobody here has heard of.
const HARMLESS = new Set(["read", "glob", "grep", "list", "ls", "lsp", "webfetch", "websearch", "codesearch", "todoread",
  "todowrite", "question", "skill", "task"])

// Of all that happens, this is what Tenure wants to hear.
const HEARD = new Set(["session.created", "session.idle", "session.status", "session.deleted"])

const FAILED = "Tenure could not be asked whether this file is free, so it was not changed. Do not go around this by the " +
  "shell or a copy. Ask the person to run `tenure files`, which says what is wrong."

/** Runs `tenure hook opencode` once. Its answer, or null if there is none that can be understood. */
function ask(payload) {
  return new Promise((resolve) => {
    let child
    let answer = ""
    let timer
    const end = (value) => {
      clearTimeout(timer)
      resolve(value)
    }
    try {
      child = spawn(PROGRAM, ["hook", "opencode"], { stdio: ["pipe", "pipe", "ignore"] })
      timer = setTimeout(() => {
        child.kill("SIGKILL")
        end(null)
      }, PATIENCE_MS)
      child.on("error", () => end(null))
      child.on("close", (code) => end(code === 0 ? understood(answer) : null))
      child.stdout.setEncoding("utf8")
      child.stdout.on("data", (text) => {
        answer += text
        if (answer.length > MOST_ANSWER) child.kill("SIGKILL")
      })
      // A program that ends before it has read everything is no reason to end OpenCode.
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(payload))
    } catch {
      end(null)
    }
  })
}

function understood(text) {
  try {
    const answer = JSON.parse(text)
    return answer && (answer.decision === "allow" || answer.decision === "deny") ? answer : null
  } catch {
    return null
  }
}

export const Tenure = async (ctx) => {
  const directory = ctx.directory
  // OpenCode takes its shell from here when it runs the first command. Ours asks before that command changes a file.
  const shell = process.env.SHELL
  if (SHELL !== null) process.env.SHELL = SHELL
  const notes = new Map()
  // What is only told is told in order, one after the other; a question waits for nobody.
  let told = Promise.resolve()
  const tell = (payload) => {
    told = told.then(() => ask(payload)).catch(() => {})
    return told
  }

  return {
    "tool.execute.before": async (input, output) => {
      const answer = await ask({ event: "tool.execute.before", input, output, directory })
      if (answer === null) {
        if (HARMLESS.has(input.tool)) return
        throw new Error(FAILED)
      }
      if (answer.decision === "allow") {
        if (typeof answer.note === "string") notes.set(input.callID, answer.note)
        return
      }
      if (answer.stop === true) {
        try {
          await ctx.client.session.abort({ path: { id: input.sessionID } })
        } catch {
          // The denial below still keeps the file.
        }
      }
      throw new Error(typeof answer.reason === "string" ? answer.reason : FAILED)
    },

    "tool.execute.after": async (input, output) => {
      const note = notes.get(input.callID)
      notes.delete(input.callID)
      if (note !== undefined && output && typeof output.output === "string") output.output += `\n\n${note}`
      // What the tool said may be large, and is not asked for.
      await tell({ event: "tool.execute.after", input, directory })
    },

    "chat.message": async (input, output) => {
      await tell({ event: "chat.message", input, output: { parts: output?.parts }, directory })
    },

    // For whom a command runs. What it sees as the person's shell stays what it was.
    "shell.env": async (input, output) => {
      if (typeof input?.sessionID === "string") output.env.TENURE_SESSION = input.sessionID
      if (shell !== undefined && shell !== SHELL) output.env.SHELL = shell
    },

    event: async ({ event }) => {
      if (HEARD.has(event.type)) await tell({ event: event.type, input: event, directory })
    },
  }
}
