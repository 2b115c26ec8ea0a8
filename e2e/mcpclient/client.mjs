// A client made of the TypeScript SDK of MCP, which knows nothing of workshop:
// it starts the server that its argument names ({command, args, cwd, env, what}),
// and goes through one of the plays below. Each check prints a line, "ok NAME"
// or "not ok NAME: why"; the exit code is 1 if one failed.
//
// The SDK itself checks every message against the protocol's schema, and each
// structured result against the tool's outputSchema.
import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'

const { command, args, cwd, env, what } = JSON.parse(process.argv[2])
let failures = 0

async function check(name, f) {
  try {
    await f()
    console.log(`ok ${name}`)
  } catch (e) {
    failures++
    console.log(`not ok ${name}: ${String(e.stack ?? e).replaceAll('\n', ' | ')}`)
  }
}

// connect gives a client. The person at it is `answers`: a function that gets
// the question and answers it; null is a client that can't ask.
async function connect(answers) {
  const client = new Client({ name: 'e2e', version: '1.0.0' }, { capabilities: answers ? { elicitation: { form: {} } } : {} })
  const person = { asked: [], answers }
  if (answers) {
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
      person.asked.push(params)
      const answer = await person.answers(params)
      return answer ? { action: 'accept', content: { answer } } : { action: 'decline' }
    })
  }
  client.changes = 0
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => { client.changes++ })
  client.onerror = e => { failures++; console.log(`not ok the protocol: ${String(e.stack ?? e).replaceAll('\n', ' | ')}`) }
  await client.connect(new StdioClientTransport({ command, args, cwd, env, stderr: 'inherit' }))
  return { client, person }
}

const text = r => r.content.map(c => c.text ?? '').join('\n')

const plays = {
  // every tool is listed, described and called; the person says yes each time.
  async tools() {
    const { client, person } = await connect(() => 'once')
    const called = new Set()
    const call = async (name, args, options) => {
      called.add(name)
      return client.callTool({ name, arguments: args }, undefined, options)
    }
    const good = async (name, args, options) => {
      const r = await call(name, args, options)
      assert.ok(!r.isError, text(r))
      assert.ok(text(r).length > 0, 'no text for the model')
      return r.structuredContent
    }
    let tools = []
    await check('instructions say what may be reached', () => {
      assert.match(client.getInstructions() ?? '', /allowed\.example\.org/)
      assert.equal(client.getServerVersion().name, 'workshop')
      assert.equal(client.getServerCapabilities().tools.listChanged, true)
    })
    await check('tools are listed with their schemas and annotations', async () => {
      tools = (await client.listTools()).tools
      const names = tools.map(t => t.name)
      for (const name of ['read_file', 'write_file', 'edit_file', 'list_files', 'search_files', 'shell', 'fetch_url', 'delegate_reviewer']) {
        assert.ok(names.includes(name), `no ${name} in ${names}`)
      }
      for (const t of tools) {
        assert.ok(t.description && t.title && t.inputSchema.type === 'object', `${t.name} isn't described`)
      }
      // A hint that is not sent is the protocol's default.
      const of = name => ({ readOnlyHint: false, destructiveHint: true, openWorldHint: true, ...tools.find(t => t.name === name).annotations })
      assert.equal(of('read_file').readOnlyHint, true)
      assert.equal(of('write_file').readOnlyHint, false)
      assert.equal(of('shell').destructiveHint, true)
      assert.equal(of('fetch_url').openWorldHint, true)
    })
    await check('write_file', async () => {
      const before = person.asked.length
      const r = await good('write_file', { path: '/workspace/out/a.txt', content: 'one\ntwo\n' })
      assert.deepEqual([r.bytes, r.created], [8, true])
      assert.equal(person.asked.length, before + 1, 'nobody was asked')
      assert.match(person.asked.at(-1).message, /\/workspace\/out\/a\.txt/)
      assert.match(person.asked.at(-1).message, /two/)
    })
    await check('edit_file', async () => {
      const r = await good('edit_file', { path: '/workspace/out/a.txt', old_string: 'two', new_string: 'three' })
      assert.deepEqual([r.replacements, r.lines], [1, [2]])
      const again = await call('edit_file', { path: '/workspace/out/a.txt', old_string: 'two', new_string: 'four' })
      assert.equal(again.isError, true)
    })
    await check('read_file, and nobody is asked', async () => {
      const before = person.asked.length
      assert.equal((await good('read_file', { path: '/workspace/out/a.txt' })).content, 'one\nthree\n')
      assert.equal(person.asked.length, before)
    })
    await check('list_files', async () => {
      const r = await good('list_files', { path: '/workspace', glob: '**/*.txt' })
      assert.deepEqual(r.entries.map(e => e.path), ['out/a.txt', 'src/main.go.txt'])
    })
    await check('search_files', async () => {
      const r = await good('search_files', { path: '/workspace', pattern: 'println\\(.*\\)' })
      assert.deepEqual(r.matches.map(m => [m.path, m.line]), [['src/main.go.txt', 3]])
    })
    await check('shell with argv, a line, and what fails', async () => {
      let r = await good('shell', { argv: ['printf', '%s', 'a b'] })
      assert.deepEqual([r.exit_code, r.stdout.text], [0, 'a b'])
      r = await good('shell', { command: 'cat; echo oops >&2; exit 3', stdin: 'in' })
      assert.deepEqual([r.exit_code, r.stdout.text, r.stderr.text], [3, 'in', 'oops\n'])
    })
    await check('a large output keeps its beginning and its end', async () => {
      const r = await good('shell', { command: 'echo begin; head -c 3000000 /dev/zero | tr "\\0" x; echo end', max_output_bytes: 1000000 })
      assert.ok(r.stdout.text.startsWith('begin') && r.stdout.text.endsWith('end\n') && r.stdout.omitted > 0)
    })
    await check('fetch_url: what is allowed, and what isn\'t', async () => {
      const r = await good('fetch_url', { url: 'http://allowed.example.org/x' })
      assert.equal(r.status, 200)
      assert.match(r.body, /"host":"allowed\.example\.org"/)
      const denied = await call('fetch_url', { url: 'http://denied.example.org/' })
      assert.ok(denied.isError || denied.structuredContent.status === 403, text(denied))
    })
    await check('many calls at the same time', async () => {
      const all = await Promise.all(Array.from({ length: 40 }, (_, i) => client.callTool({ name: 'read_file', arguments: { path: '/workspace/src/main.go.txt', max_lines: i % 3 + 1 } })))
      all.forEach((r, i) => assert.equal(r.structuredContent.lines, i % 3 + 1, text(r)))
    })
    await check('wrong arguments are told to the model', async () => {
      for (const args of [{}, { path: 7 }, { path: 'x', nope: 1 }]) {
        const r = await client.callTool({ name: 'read_file', arguments: args })
        assert.equal(r.isError, true)
      }
    })
    await check('a tool that isn\'t offered is an error of the protocol', async () => {
      for (const name of ['rm', 'reviewer__write_file', '../read_file', '']) {
        await assert.rejects(client.callTool({ name, arguments: {} }), e => e.code === -32602, name)
      }
    })
    await check('progress', async () => {
      const seen = []
      await good('shell', { command: 'sleep 2.5' }, { onprogress: p => seen.push(p) }) // told of every second
      assert.ok(seen.length > 0)
      for (let i = 1; i < seen.length; i++) assert.ok(seen[i].progress > seen[i - 1].progress)
    })
    await check('a cancelled call ends in the worker', async () => {
      const stop = new AbortController()
      const running = client.callTool({ name: 'shell', arguments: { command: 'sleep 31337 & sleep 31338; echo never' } }, undefined, { signal: stop.signal })
      const sleeping = async () => (await good('shell', { command: 'n=0; for p in /proc/[0-9]*; do case "$(tr "\\0" " " <$p/cmdline 2>/dev/null)" in "sleep 3133"*) n=$((n+1));; esac; done; echo $n' })).stdout.text.trim()
      await until(async () => await sleeping() === '2')
      stop.abort('enough')
      await assert.rejects(running)
      await until(async () => await sleeping() === '0')
    })
    await check('resources say what the workshop grants', async () => {
      const { resources } = await client.listResources()
      assert.ok(resources.length > 0)
      for (const { uri } of resources) {
        const { contents } = await client.readResource({ uri })
        assert.ok(contents[0].text.length > 0, uri)
      }
      await assert.rejects(client.readResource({ uri: 'workshop://nope' }), e => e.code === -32002)
    })
    await check('a delegate: its definition, its tools, and their end', async () => {
      const before = client.changes
      const r = await call('delegate_reviewer', { task: 'review' })
      assert.ok(!r.isError, text(r))
      assert.match(text(r), /You review, and change nothing\./)
      await until(() => client.changes > before)
      const more = (await client.listTools()).tools.map(t => t.name).filter(n => !tools.some(t => t.name === n))
      assert.ok(more.length >= 2, `${more}`)
      const its = own => more.find(n => n.endsWith('__' + own))
      assert.equal(its('write_file'), undefined)
      assert.match((await good(its('read_file'), { path: '/workspace/src/main.go.txt' })).content, /println/)
      const asked = person.asked.length
      const other = await call(its('shell'), { argv: ['ls'] })
      assert.equal(other.isError, true, 'Bash(git:*) runs ls')
      assert.equal(person.asked.length, asked, 'a person was asked about what isn\'t offered')
      assert.equal((await good(its('shell'), { argv: ['git', '--version'] })).exit_code, 0)
      const changes = client.changes
      assert.ok(!(await call('end_delegation', { worker: 'reviewer' })).isError)
      await until(() => client.changes > changes)
      assert.deepEqual((await client.listTools()).tools, tools)
      await assert.rejects(client.callTool({ name: its('read_file'), arguments: { path: 'x' } }), e => e.code === -32602)
    })
    await check('ping', () => client.ping())
    await check('every tool was called', () => assert.deepEqual(tools.map(t => t.name).filter(n => !called.has(n)), []))
    await client.close()
  },

  // what a person answers decides; what was refused didn't happen.
  async approvals() {
    const { client, person } = await connect(() => null)
    await client.listTools()
    const write = name => client.callTool({ name: 'write_file', arguments: { path: `/workspace/out/${name}`, content: 'x' } })
    const there = async name => !(await client.callTool({ name: 'read_file', arguments: { path: `/workspace/out/${name}` } })).isError
    for (const answer of [null, 'no']) {
      await check(`${answer ?? 'decline'} refuses`, async () => {
        person.answers = () => answer
        const r = await write('refused')
        assert.equal(r.isError, true)
        assert.ok(!await there('refused'))
      })
    }
    await check('once allows one call', async () => {
      person.answers = () => 'once'
      const before = person.asked.length
      assert.ok(!(await write('once')).isError)
      assert.ok(!(await write('once')).isError)
      assert.equal(person.asked.length, before + 2)
    })
    await check('session allows the calls that are like it', async () => {
      const run = argv => client.callTool({ name: 'shell', arguments: { argv } })
      person.answers = q => q.requestedSchema.properties.answer.enum.includes('session') ? 'session' : null
      const before = person.asked.length
      assert.ok(!(await run(['true'])).isError)
      assert.ok(!(await run(['true'])).isError)
      assert.equal(person.asked.length, before + 1)
      person.answers = () => null
      assert.equal((await run(['id'])).isError, true)
    })
    await check('a line with operators can only be allowed once', async () => {
      person.answers = () => null
      await client.callTool({ name: 'shell', arguments: { command: 'true; true' } })
      assert.deepEqual(person.asked.at(-1).requestedSchema.properties.answer.enum, ['no', 'once'])
    })
    await check('a question waits, other calls go on', async () => {
      let answer
      const answered = new Promise(resolve => { answer = resolve })
      person.answers = () => answered
      const before = person.asked.length
      const writing = write('late')
      await until(() => person.asked.length > before)
      assert.ok(!await there('late'))
      answer('once')
      assert.ok(!(await writing).isError)
      assert.ok(await there('late'))
    })
    await client.close()
  },

  // a client that can't ask: what needs a yes is refused, with what to do.
  async mute() {
    const { client } = await connect(null)
    await client.listTools()
    await check('reading needs no yes', async () => {
      assert.ok(!(await client.callTool({ name: 'read_file', arguments: { path: '/workspace/src/main.go.txt' } })).isError)
    })
    await check('the rest is refused, and says what to do', async () => {
      const r = await client.callTool({ name: 'write_file', arguments: { path: '/workspace/out/mute', content: 'x' } })
      assert.equal(r.isError, true)
      assert.match(text(r), /approv/)
      assert.match(text(r), /tell the person/)
    })
    await client.close()
  },

  // all workers in one server.
  async all() {
    const { client } = await connect(() => 'once')
    await check('names have the worker\'s in front', async () => {
      const names = (await client.listTools()).tools.map(t => t.name)
      assert.ok(names.includes('builder__shell') && names.includes('reviewer__read_file'), `${names}`)
      assert.ok(!names.includes('reviewer__write_file'))
      for (const worker of ['builder', 'reviewer']) {
        const r = await client.callTool({ name: `${worker}__read_file`, arguments: { path: '/workspace/src/main.go.txt' } })
        assert.ok(!r.isError, text(r))
      }
      await assert.rejects(client.callTool({ name: 'reviewer__write_file', arguments: {} }), e => e.code === -32602)
    })
    await client.close()
  },
}

async function until(f) {
  for (const end = Date.now() + 20000; Date.now() < end; await new Promise(r => setTimeout(r, 50))) {
    if (await f()) return
  }
  assert.fail(`never came true: ${f}`)
}

await plays[what]()
process.exit(failures ? 1 : 0)
