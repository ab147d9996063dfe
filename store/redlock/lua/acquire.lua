
-- ARGV replica, nonce, attempt, lease ms, session ms, start (1 or 0), info
-- Returns {granted, ..., token, counter, run in which a leader has vouched for it}, {held, ..., lease, its remaining ms}, {lost, ...} or {ended, ...}.

local err = check()
if err then
  return err
end
local replica, nonce, attempt, about = ARGV[1], ARGV[2], ARGV[3], ARGV[7]
local us = now_us()
local ms = math.floor(us / 1000)
local ttl = tonumber(ARGV[4])
local till = ms + ttl
if is_refused('released', nonce) or is_refused('withdrawn', attempt) then
  return answer('lost', us)
end
local living = session_end(sessions, replica, ms)
if ARGV[6] ~= '1' and not living then
  return answer('ended', us)
end
local token, r, n, before, value = holder()
if token and (r ~= replica or n ~= nonce) then
  set_session(sessions, info, replica, math.max(living or 0, ms + tonumber(ARGV[5])), about, ms)
  return answer('held', us, value, whole(redis.call('PTTL', lease)))
end
if token and older(attempt, before) then
  return answer('lost', us)
elseif token and before == '-' then
  attempt = before
end
token = token or '0'
hold(token, replica, nonce, attempt, till)
mark(ttl)
keep_votes(ttl)
-- This node alone grants nothing: a session that lasts longer is cut when a majority has, by the first renewal.
set_session(sessions, info, replica, math.max(living or 0, till), about, ms)
local known = redis.call('HMGET', votes, 'counter', 'run')
return answer('granted', us, token, known[1] or '0', known[2] or '')
